// A library that calls another one's function many times, as a plug-in's host does.

long call_often(long (*function)(long), long times) {
  long result = 0;
  for (long i = 0; i < times; ++i) result = function(i) - i;
  return result;
}
