// SPDX-License-Identifier: Apache-2.0
// Tests shortened function names.
'use strict';

const NAMES = [
  ['main', 'main'],
  ['work(char const*)', 'work(char const*)'],
  // Names that fit stay unchanged.
  ['std::vector<int>::push_back(int const&)', 'std::vector<int>::push_back(int const&)'],
  ['std::map<std::string, std::vector<int> >::operator[](std::string const&)', 'std::map<std::string, std::vector<…> >::operator[](std::string const&)', 71],
  ['std::map<std::string, std::vector<int> >::operator[](std::string const&)', 'std::map<…>::operator[](std::string const&)'],
  ['std::map<std::string, std::vector<int> >::find(std::string const&) const', 'std::map<…>::find(std::string const&) const'],
  ['void std::__sort<std::string*, std::less<std::string> >(std::string*, std::string*)', 'std::__sort<…>(…)'],
  ['std::enable_if<true, int>::type pick<int, long, unsigned long>(int, long, unsigned long)', 'pick<…>(…)'],
  // Brackets that enclose nothing.
  ['std::ostream& operator<< <std::char_traits<char> >(std::ostream&, char const*)', 'std::ostream& operator<< <…>(…)'],
  ['shelf<std::string, std::string>::operator->() const [clone .constprop.0]', 'shelf<…>::operator->() const [clone .constprop.0]', 50],
  ['bool operator<(item<std::string> const&, item<std::string> const&)', 'bool operator<(…)'],
  ['(anonymous namespace)::check(std::basic_string<char, std::char_traits<char> > const&)', '(anonymous namespace)::check(…)'],
  ['main::{lambda(std::unique_ptr<Order, std::default_delete<Order> >)#1}::operator()() const', 'main::{lambda(…)#1}::operator()() const'],
  // Rust names.
  ['<alloc::vec::Vec<alloc::string::String> as core::ops::drop::Drop>::drop', '<alloc::vec::Vec<…> as core::ops::drop::Drop>::drop'],
  ['core::iter::map_fold::<i32, fn(i32) -> i32, alloc::vec::Vec<i32>>::{{closure}}', 'core::iter::map_fold::<…>::{{closure}}'],
  // Brackets of no template.
  ['"</script><img src=y onerror=document.body.dataset.state>"', '"</script><img src=y onerror=document.body.dataset.state>"'],
  // No brackets, or unmatched ones.
  ['', ''], ['<'.repeat(60), '<'.repeat(60)], ['>'.repeat(60), '>'.repeat(60)],
  ['a'.repeat(200), 'a'.repeat(200)],
];

exports.check = (shortName) => {
  for (const [name, wanted, most] of NAMES) {
    const short = shortName(name, most);
    if (wanted !== null && short !== wanted) throw new Error(name + ' becomes ' + short + ', not ' + wanted);
    if (short.length > name.length) throw new Error(name + ' becomes longer: ' + short);
  }
};
