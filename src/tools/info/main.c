/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main: weft-info: prints the build, the usable transports, the knobs and the selected protocols. Reads the library's tables; starts
 * processes for --protocols only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/missing.h"
#include "base/cpu_count.h"
#include "base/knob.h"
#include "base/macros.h"
#include "tools/info/collectives.h"
#include "tools/info/devices.h"
#include "tools/info/modules.h"
#include "tools/info/out.h"
#include "tools/info/protocols.h"

enum section {
    BUILD = 1, MACHINE = 2, TRANSPORTS = 4, KNOBS = 8, MISSING = 16, REGISTRATION = 32, ALL_TRANSPORTS = 64,
    COLLECTIVES = 128, EXTENSIONS = 256,
    USUAL = BUILD | MACHINE | TRANSPORTS | REGISTRATION | KNOBS
};

static const char help[] =
    "weft-info: the build, the usable transports, the knobs and the selected protocols of this Weft.\n"
    "  --version       the version only\n"
    "  --build         version, compiler, flags, optional parts\n"
    "  --machine       the CPUs that this process may use\n"
    "  --transports    each transport: usable or why not, its devices and addresses (loads every module)\n"
    "  --registration  the memory monitors of the registration cache, each tested now\n"
    "  --knobs         each knob: value, origin, meaning\n"
    "  --missing       the functions of the MPI standard ABI that are not implemented yet\n"
    "  --extensions    the functions beyond MPI 5.0\n"
    "  --protocols     the protocol for each message size, with measured rates (starts two ranks)\n"
    "  --collectives [RANKS [NODES]]\n"
    "                  the algorithm of each collective by length, with its cost (16 ranks on one node)\n"
    "  --json          print JSON (not with --protocols)\n"
    "Without an option: build, machine, transports (loads a network's module only if a device seems active), registration, knobs.\n";

static void show_build(out *to)
{
    char text[64];
    out_section(to, "build", "Weft " PACKAGE_VERSION);
    out_row(to, "version", PACKAGE_VERSION, NULL);
    out_row(to, "library", "libmpi_abi.so.1", "the MPI standard ABI");
    out_row(to, "built for", WEFT_BUILD_HOST, NULL);
    out_row(to, "Fortran", WEFT_BUILD_FORTRAN, NULL);
    modules_show(to);
    out_row(to, "compiler", WEFT_BUILD_CC " " __VERSION__, NULL);
    out_row(to, "flags", WEFT_BUILD_CFLAGS, NULL);
    out_row(to, "prefix", WEFT_PREFIX, NULL);
#ifdef WEFT_HAVE_PMIX
    out_row(to, "PMIx", "yes", "libpmix is loaded on demand");
#else
    out_row(to, "PMIx", "no", "built with --disable-pmix");
#endif
    out_row(to, "PMI-1, PMI-2", "yes", "for mpiexec of MPICH (hydra), srun --mpi=pmi2");
    snprintf(text, sizeof(text), "%u of %u", weft_api_total - weft_api_missing_count, weft_api_total);
    out_row(to, "MPI functions", text, "of MPI 5.0; weft-info --missing lists the others");
    out_row(to, "extensions", "MPIX_NOTIFIED_ACCESS", "mpi-ext.h; weft-info --extensions lists the functions");
    out_section_end(to);
}

static void show_machine(out *to)
{
    char text[16];
    out_section(to, "machine", "CPUs available to this process");
    snprintf(text, sizeof(text), "%d", weft_cpu_count_affinity());
    out_row(to, "affinity mask", text, NULL);
    int quota = weft_cpu_count_quota();
    snprintf(text, sizeof(text), "%d", quota);
    out_row(to, "cgroup quota", quota ? text : "no limit", NULL);
    snprintf(text, sizeof(text), "%d", weft_cpu_count());
    out_row(to, "used by Weft", text, NULL);
    out_section_end(to);
}

static void show_transports(out *to) { devices_show(to, false); }
static void show_all_transports(out *to) { devices_show(to, true); }

static void show_knobs(out *to)
{
    out_section(to, "knobs", "knobs (environment variables): name, value, [origin] meaning (values)");
    for (int i = 0; i < weft_knob_row_count; i++) {
        const weft_knob_row *row = &weft_knob_rows[i];
        char name[64], value[256], note[768];
        snprintf(name, sizeof(name), "WEFT_%s", row->name);
        for (char *at = name; *at; at++)
            *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
        weft_knob_show(i, value, sizeof(value));
        snprintf(note, sizeof(note), "[%s] %s%s%s%s", weft_knob_origin(i), row->sentence, row->words ? " (" : "", row->words ?
                 row->words : "",
                 row->words ? ")" : "");
        out_row(to, name, *value || to->is_json ? value : "\"\"", note);
    }
    out_section_end(to);
}

static void show_missing(out *to)
{
    char title[96];
    snprintf(title, sizeof(title), "%u of %u functions are not implemented yet: they raise MPI_ERR_UNSUPPORTED_OPERATION",
             weft_api_missing_count, weft_api_total);
    out_section(to, "missing", title);
    for (const char *const *name = weft_api_missing; *name; name++)
        out_row(to, *name, "missing", to->is_json ? NULL : "");
    out_section_end(to);
}

static void show_extensions(out *to)
{
    out_section(to, "extensions", "functions beyond MPI 5.0, declared in mpi-ext.h; their manual pages describe them");
    for (const char *const *name = weft_api_extensions; *name; name++)
        out_row(to, *name, "present", to->is_json ? NULL : "");
    out_section_end(to);
}

static uint32_t coll_ranks = 16, coll_nodes = 1;

static void show_collectives(out *to) { collectives_show(to, coll_ranks, coll_nodes); }

/* Reads a number of 1 to `max` from args[*i + 1], unless that is an option or absent. False: no such number. */
static bool number_take(char **args, int *i, uint32_t max, uint32_t *number)
{
    char *end;
    unsigned long value;
    if (!args[*i + 1] || args[*i + 1][0] == '-')
        return true;
    value = strtoul(args[++*i], &end, 10);
    *number = (uint32_t)value;
    return args[*i][0] >= '0' && args[*i][0] <= '9' && !*end && value >= 1 && value <= max;
}

/* Adds the option's section to *sections. False: unknown option. */
static bool section_add(const char *option, unsigned *sections)
{
    static const struct {
        const char *name;
        unsigned sections;
    } rows[] = {{"--build", BUILD}, {"--machine", MACHINE}, {"--transports", ALL_TRANSPORTS}, {"--registration", REGISTRATION}, {"--knobs",
        KNOBS}, {"--missing", MISSING}, {"--extensions", EXTENSIONS}};
    for (size_t i = 0; i < weft_count(rows); i++)
        if (strcmp(option, rows[i].name) == 0) {
            *sections |= rows[i].sections;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    unsigned sections = 0;
    bool is_json = false;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
            return fputs(help, stdout) < 0;
        if (strcmp(option, "--version") == 0)
            return puts("Weft " PACKAGE_VERSION) < 0;
        if (strcmp(option, "--protocols") == 0)
            return protocols_start();
        if (strcmp(option, "--protocols-rank") == 0)
            return protocols_rank();
        if (strcmp(option, "--json") == 0)
            is_json = true;
        else if (strcmp(option, "--collectives") == 0) {
            sections |= COLLECTIVES;
            if (!number_take(argv, &i, COLLECTIVES_RANKS_MAX, &coll_ranks) || !number_take(argv, &i, coll_ranks, &coll_nodes)) {
                fprintf(stderr, "weft-info: --collectives takes 1 to %u ranks, and no more nodes than ranks, not %s\n",
                        COLLECTIVES_RANKS_MAX, argv[i]);
                return 2;
            }
        } else if (!section_add(option, &sections)) {
            fprintf(stderr, "weft-info: unknown option %s; --help lists them\n", option);
            return 2;
        }
    }
    weft_knobs_load(true);
    out to;
    sections = sections ? sections : USUAL;
    out_open(&to, is_json);
    static const struct {
        enum section section;
        void (*show)(out *to);
    } shows[] = {{BUILD, show_build}, {MACHINE, show_machine}, {TRANSPORTS, show_transports}, {ALL_TRANSPORTS, show_all_transports},
                 {REGISTRATION, devices_show_memmons}, {KNOBS, show_knobs}, {MISSING, show_missing}, {EXTENSIONS, show_extensions},
                 {COLLECTIVES, show_collectives}};
    for (size_t i = 0; i < weft_count(shows); i++)
        if (sections & shows[i].section)
            shows[i].show(&to);
    out_close(&to);
    return fflush(stdout) == 0 ? 0 : 1;
}
