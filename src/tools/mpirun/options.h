/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: the command line as data. main parses it once; map, allocation and program complete it before ranks start, and it is constant
 * afterwards.
 */
#ifndef WEFT_MPIRUN_OPTIONS_H
#define WEFT_MPIRUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/hosts.h"

enum bind_unit { BIND_AUTO, BIND_NONE, BIND_HWTHREAD, BIND_CORE, BIND_NUMA, BIND_SOCKET };
enum pmix_mode { PMIX_MODE_AUTO, PMIX_MODE_ALWAYS, PMIX_MODE_NEVER };
enum stdin_to { STDIN_ALL = -2, STDIN_NONE = -1 }; /* other values: a rank */

/* NAME=VALUE. */
typedef struct env_edit {
    char *text;
} env_edit;

/* One part of the job, with one program: the arguments between two ':'. */
typedef struct app {
    uint32_t count, first; /* its ranks are first .. first + count - 1 */
    uint32_t per_node;     /* -N: ranks on each host; 0: not given */
    bool is_counted;       /* -n was given */
    char **argv;           /* points into main's argv, NULL-terminated */
    const char *wdir;      /* NULL: mpirun's */
    env_edit *edits;
    uint32_t edit_count;
    const char *env_list;  /* names of variables to pass, comma-separated; NULL: all */
    bool env_none;
    char *path;            /* path of the executable as found (program.h); NULL: not looked up here */
    bool is_weft;          /* linked with libmpi_abi */
    bool is_foreign;       /* linked with another MPI or with PMIx */
    bool is_mpich;         /* is_foreign, by MPICH's library, which usually uses PMI-1 and not PMIx */
    bool is_open;          /* is_foreign, by Open MPI's library */
} app;

typedef struct options {
    app *apps;
    uint32_t app_count;
    uint32_t ranks;        /* of all apps; set by map_make */
    env_edit *edits;       /* for every app */
    uint32_t edit_count;
    const char *env_list;
    bool env_none;
    bool is_tagged, is_bind_reported, is_verbose;
    const char *output;    /* prefix of files for the ranks' output; NULL: mpirun's own output */
    int stdin_to;
    double timeout_s;      /* 0: none */
    enum bind_unit bind;
    enum bind_unit map;    /* unit by which ranks are placed in turn; BIND_AUTO: adjacent */
    uint32_t per_rank;     /* cores or hardware threads of each rank; 0: not given */
    enum pmix_mode pmix;
    host_list hosts;       /* hosts that may get ranks; without has_hosts: this machine */
    host_list file_hosts;  /* from --hostfile; options_parse merges it with --host */
    bool has_hosts;
    bool is_by_node;       /* ranks are placed on the hosts round-robin */
    const char *rankfile, *agent; /* rankfile NULL: none; agent NULL: ssh */
    uint32_t fanout;              /* most daemons that one process starts; 0: FANOUT_DEFAULT */
    char **slots;          /* [ranks] CPUs from a rankfile (cpuslot.h), NULL entry: none; NULL: no rank has any */
    char *allocation;      /* "Slurm's allocation 17", the source of the hosts; NULL: no allocation */
    bool recovers;         /* the job goes on when a rank dies */
    bool is_by_srun;       /* one srun starts all daemons */
} options;

/* Parses the command line. 0, or the exit code of mpirun after a message; help and version: 0 with apps == NULL. */
int options_parse(int argc, char **argv, options *opts);
void options_free(options *opts);

#define FANOUT_DEFAULT 64 /* default of WEFT_LAUNCH_FANOUT */
#define RANKS_MAX 65536 /* most ranks of a job */

extern const char help_text[];
/* Returns WEFT_LAUNCH_FANOUT; 0: unset, or invalid, after a message. */
uint32_t fanout_read(void);

#endif
