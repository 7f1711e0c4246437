# src/mem: the node's segment, wakeup sockets, pools
libweft_a_SOURCES += src/mem/segment.h src/mem/segment.c src/mem/segment_heap.h src/mem/segment_heap.c
libweft_a_SOURCES += src/mem/rank_page.h src/mem/rank_page.c
libweft_a_SOURCES += src/mem/membarrier.h
libweft_a_SOURCES += src/mem/wakeup_sock.h src/mem/wakeup_sock.c
libweft_a_SOURCES += src/mem/pool.h src/mem/pool.c
# memmon and the registration cache
libweft_a_SOURCES += src/mem/ranges.c src/mem/ranges.h \
	src/mem/memmon.c src/mem/memmon.h src/mem/memmon_uffd.c src/mem/memmon_uffd.h \
	src/mem/proc_maps.c src/mem/proc_maps.h src/mem/memmon_internal.h src/mem/memmon_selftest.c \
	src/mem/syscall_patch.c src/mem/syscall_patch.h \
	src/mem/regcache.c src/mem/regcache.h src/mem/regcache_async.c src/mem/regcache_entry.c src/mem/regcache_limits.c \
	src/mem/regcache_watch.c src/mem/regcache_unpin.c \
	src/mem/regcache_internal.h \
	src/mem/regcache_tree.c src/mem/regcache_tree.h
# What runs in patched system calls: touches general registers only.
noinst_LIBRARIES += libweftbare.a
libweftbare_a_SOURCES = src/mem/memhooks.c src/mem/memhooks.h src/mem/inval_log.c src/mem/inval_log.h \
	src/mem/unmap_wakeup.c src/mem/unmap_wakeup.h \
	src/mem/syscall_site.h src/mem/syscall_site_x86_64.c src/mem/syscall_site_aarch64.c src/mem/syscall_site_none.c
libweftbare_a_CFLAGS = $(AM_CFLAGS) $(pic_cflags) $(BARE_CFLAGS)
libweft_a_LIBADD = $(libweftbare_a_OBJECTS)
libweft_a_DEPENDENCIES = $(libweftbare_a_OBJECTS)
