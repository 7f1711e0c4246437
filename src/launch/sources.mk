# src/launch: boot: rank, size, nodes and modex of this process, by mpirun, PMIx, PMI-1, PMI-2 or singleton
libweft_a_SOURCES += src/launch/boot.h src/launch/boot_internal.h src/launch/boot_env.h src/launch/boot.c src/launch/boot_env.c \
	src/launch/task_env.c src/launch/modex_cache.c src/launch/modex_cache.h \
	src/launch/boot_mpirun.c src/launch/boot_singleton.c src/launch/abort_text.c src/launch/segment_fd.c src/launch/segment_fd.h \
	src/launch/boot_pmi.c src/launch/pmi.c src/launch/pmi.h src/launch/pmi_wire.c src/launch/pmi_wire.h src/launch/pmi_value.c \
	src/launch/pmi_value.h \
	src/launch/pmi_map.c src/launch/pmi_map.h
if WITH_PMIX
libweft_a_SOURCES += src/launch/boot_pmix.c src/launch/boot_pmix_job.c src/launch/boot_pmix_wait.c src/launch/boot_pmix_internal.h
else
libweft_a_SOURCES += src/launch/boot_pmix_stub.c
endif
EXTRA_DIST += src/launch/boot_pmix_stub.c
