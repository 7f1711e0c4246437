# weft-info: prints the build, the usable transports, the knobs and the selected protocols
bin_PROGRAMS += weft-info
weft_info_SOURCES = src/tools/info/main.c src/tools/info/out.c src/tools/info/out.h src/tools/info/protocols.c src/tools/info/protocols.h \
	src/tools/info/devices.c src/tools/info/devices.h src/tools/info/modules.c src/tools/info/modules.h \
	src/tools/info/collectives.c src/tools/info/collectives.h src/tools/wrapper/prefix.c src/tools/wrapper/prefix.h
nodist_weft_info_SOURCES = src/api/missing.c
weft_info_CPPFLAGS = $(AM_CPPFLAGS) -DWEFT_PREFIX='"$(prefix)"' -DWEFT_BINDIR='"$(bindir)"' -DWEFT_LIBDIR='"$(libdir)"' \
	-DWEFT_INCLUDEDIR='"$(includedir)"'
weft_info_LDADD = libweft.a
