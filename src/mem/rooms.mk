# src/mem: memory that ranks share
libweft_la_SOURCES += src/mem/segment.h src/mem/segment.c
libweft_la_SOURCES += src/mem/pool.h src/mem/pool.c
