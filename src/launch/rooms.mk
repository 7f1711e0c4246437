# src/launch: who am I, and who is there?
libweft_la_SOURCES += src/launch/boot.h src/launch/ways.h src/launch/word.h src/launch/boot.c src/launch/word.c src/launch/step.c src/launch/far.c src/launch/far.h \
	src/launch/boot_mpirun.c src/launch/boot_singleton.c src/launch/speak.c src/launch/handout.c src/launch/handout.h \
	src/launch/boot_pmi.c src/launch/pmi.c src/launch/pmi.h src/launch/pmi_line.c src/launch/pmi_line.h src/launch/pmi_card.c src/launch/pmi_card.h \
	src/launch/pmi_map.c src/launch/pmi_map.h
if WITH_PMIX
libweft_la_SOURCES += src/launch/boot_pmix.c src/launch/boot_pmix_job.c src/launch/boot_pmix_internal.h
else
libweft_la_SOURCES += src/launch/boot_pmix_none.c
endif
EXTRA_DIST += src/launch/boot_pmix_none.c
