# src/mem: memory that ranks share
libweft_la_SOURCES += src/mem/segment.h src/mem/segment.c
libweft_la_SOURCES += src/mem/chime.h src/mem/chime.c
libweft_la_SOURCES += src/mem/pool.h src/mem/pool.c
# the watch and the registration cache
libweft_la_SOURCES += src/mem/news.c src/mem/ranges.c src/mem/ranges.h \
	src/mem/watch.c src/mem/watch.h src/mem/watch_fault.c src/mem/watch_fault.h \
	src/mem/watch_maps.c src/mem/watch_maps.h src/mem/watch_parts.h src/mem/watch_preload.h src/mem/watch_try.c \
	src/mem/regcache.c src/mem/regcache.h src/mem/regcache_ahead.c src/mem/regcache_bounds.c src/mem/regcache_parts.h \
	src/mem/regcache_tree.c src/mem/regcache_tree.h
# what mpirun preloads: alone it knows nothing of the library
preloaddir = $(libdir)/weft
preload_LTLIBRARIES = libweft-watch.la
libweft_watch_la_SOURCES = src/mem/preload.c src/mem/news.c src/mem/ranges.c
libweft_watch_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -Wl,-z,defs -Wl,-z,nodelete
