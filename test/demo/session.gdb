break main
continue
record btrace
continue
print stock
info record

# A shelf for 3 holds 4. The stack only says where that was noticed:
backtrace

# The trace says how it came to this. Here is every call since main, with its instructions and lines:
record function-call-history /ilc 1,30

# Backwards from here: what ran before the check?
reverse-finish
reverse-step
reverse-step

# Goods were put back, since the charge was refused. Had they ever been taken? Out to the caller, then
# back to where reserve() returned before that.
reverse-finish
tbreak shop.cpp:11
reverse-continue
reverse-step

# There it is: reserve() said "false", nobody listened, and put_back() gave back what was never
# taken. The instructions say the same; the jump over "return false" was not taken:
record instruction-history /m 142,+9

# Other ways to move: to a breakpoint backwards, to the beginning, forwards again.
tbreak charge
reverse-continue
record goto begin
info record
next
next
reverse-continue

# The live end again.
record goto end
record stop
kill
