break main
continue
record btrace
continue
print stock
info record

# A shelf for 3 holds 4. The stack only shows where that was noticed:
backtrace

# The trace shows how that happened. Here is every call since main, with its instructions and lines:
record function-call-history /ilc 1,30

# Backwards from here: what ran before the check?
reverse-finish
reverse-step
reverse-step

# Goods were put back because the charge was refused. Had they been taken before? Go out to the caller,
# then back to where reserve() returned.
reverse-finish
tbreak shop.cpp:11
reverse-continue
reverse-step

# There it is: reserve() returned false, order() ignored that, and put_back() returned goods that were
# never taken. The instructions agree: the jump over "return false" was not taken:
record instruction-history /m 142,+9

# Other ways to move: back to a breakpoint, to the beginning, forward again.
tbreak charge
reverse-continue
record goto begin
info record
next
next
reverse-continue

# Back to the live end.
record goto end
record stop
kill
