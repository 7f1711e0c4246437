# src/mem: the node's segment, wakeup sockets, pools
libweft_la_SOURCES += src/mem/segment.h src/mem/segment.c src/mem/segment_heap.h src/mem/segment_heap.c
libweft_la_SOURCES += src/mem/rank_page.h src/mem/rank_page.c
libweft_la_SOURCES += src/mem/wakeup_sock.h src/mem/wakeup_sock.c
libweft_la_SOURCES += src/mem/pool.h src/mem/pool.c
# memmon and the registration cache
libweft_la_SOURCES += src/mem/inval_log.c src/mem/inval_log.h src/mem/ranges.c src/mem/ranges.h \
	src/mem/memmon.c src/mem/memmon.h src/mem/memmon_uffd.c src/mem/memmon_uffd.h \
	src/mem/proc_maps.c src/mem/proc_maps.h src/mem/memmon_internal.h src/mem/memhooks.h src/mem/memmon_selftest.c \
	src/mem/regcache.c src/mem/regcache.h src/mem/regcache_async.c src/mem/regcache_entry.c src/mem/regcache_limits.c \
	src/mem/regcache_watch.c \
	src/mem/regcache_internal.h \
	src/mem/regcache_tree.c src/mem/regcache_tree.h
# preloaded by mpirun; independent of the library
preloaddir = $(libdir)/weft
preload_LTLIBRARIES = libweft-memhooks.la
libweft_memhooks_la_SOURCES = src/mem/memhooks.c src/mem/inval_log.c src/mem/ranges.c
libweft_memhooks_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -Wl,-z,defs -Wl,-z,nodelete
