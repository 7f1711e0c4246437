# transports/self: a rank to itself
libweft_la_SOURCES += transports/self/self.c
