# transports/self: messages of a rank to itself
libweft_a_SOURCES += transports/self/self.c
