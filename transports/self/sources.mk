# transports/self: messages of a rank to itself
libweft_la_SOURCES += transports/self/self.c
