/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: see options.h. One table of names serves parsing, "did you mean" and the test of the shell completion. It includes the names
 * that users of other launchers type.
 */
#include "tools/mpirun/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/mpirun/report.h"

enum opt_id {
    OPT_COUNT, OPT_ENV, OPT_X, OPT_GENV, OPT_ENVLIST, OPT_GENVLIST, OPT_ENVNONE, OPT_GENVNONE, OPT_GENVALL, OPT_WDIR, OPT_TAG,
    OPT_OUTPUT, OPT_STDIN, OPT_TIMEOUT, OPT_BIND, OPT_MAP, OPT_REPORT, OPT_NOTHING, OPT_PER_NODE, OPT_PMIX, OPT_HELP, OPT_VERSION,
    OPT_HOST, OPT_HOSTFILE, OPT_RANKFILE, OPT_AGENT, OPT_VERBOSE, OPT_ERRHANDLER, OPT_KINDS, OPT_RECOVER
};

/* Names without dashes: -np and --np are the same. */
static const struct opt_row {
    const char *name;
    enum opt_id id;
    int values;
} rows[] = {
    {"n", OPT_COUNT, 1}, {"np", OPT_COUNT, 1}, {"c", OPT_COUNT, 1},
    {"x", OPT_X, 1}, {"env", OPT_ENV, 2}, {"genv", OPT_GENV, 2}, {"envlist", OPT_ENVLIST, 1}, {"genvlist", OPT_GENVLIST, 1},
    {"envnone", OPT_ENVNONE, 0}, {"genvnone", OPT_GENVNONE, 0}, {"genvall", OPT_GENVALL, 0}, {"envall", OPT_GENVALL, 0},
    {"wdir", OPT_WDIR, 1}, {"wd", OPT_WDIR, 1},
    {"tag-output", OPT_TAG, 0}, {"l", OPT_TAG, 0}, {"prepend-rank", OPT_TAG, 0}, {"output-filename", OPT_OUTPUT, 1},
    {"stdin", OPT_STDIN, 1}, {"timeout", OPT_TIMEOUT, 1},
    {"bind-to", OPT_BIND, 1}, {"map-by", OPT_MAP, 1}, {"report-bindings", OPT_REPORT, 0},
    {"oversubscribe", OPT_NOTHING, 0}, {"o", OPT_NOTHING, 0}, {"use-hwthread-cpus", OPT_NOTHING, 0},
    {"allow-run-as-root", OPT_NOTHING, 0}, {"quiet", OPT_NOTHING, 0}, {"q", OPT_NOTHING, 0},
    {"ppn", OPT_PER_NODE, 1}, {"N", OPT_PER_NODE, 1}, {"npernode", OPT_PER_NODE, 1},
    {"hostfile", OPT_HOSTFILE, 1}, {"machinefile", OPT_HOSTFILE, 1}, {"f", OPT_HOSTFILE, 1},
    {"host", OPT_HOST, 1}, {"H", OPT_HOST, 1}, {"hosts", OPT_HOST, 1},
    {"rankfile", OPT_RANKFILE, 1}, {"rf", OPT_RANKFILE, 1}, {"launch-agent", OPT_AGENT, 1}, {"launcher-exec", OPT_AGENT, 1},
    {"initial-errhandler", OPT_ERRHANDLER, 1}, {"memory-alloc-kinds", OPT_KINDS, 1},
    {"enable-recovery", OPT_RECOVER, 0}, {"disable-auto-cleanup", OPT_RECOVER, 0}, {"continuous", OPT_RECOVER, 0},
    {"pmix", OPT_PMIX, 1}, {"verbose", OPT_VERBOSE, 0}, {"v", OPT_VERBOSE, 0},
    {"help", OPT_HELP, 0}, {"h", OPT_HELP, 0}, {"version", OPT_VERSION, 0}, {"V", OPT_VERSION, 0},
};

/* Edit distance (change, delete, insert) of the first 64 letters. */
static int word_distance(const char *a, const char *b)
{
    int row[65], la = (int)strnlen(a, 64), lb = (int)strnlen(b, 64);

    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[lb];
}

/* Options of other launchers, and the equivalent here. */
static const struct other_launcher {
    const char *name, *instead;
} other_launchers[] = {
    {"mca", "Weft's knobs are environment variables such as WEFT_TRANSPORTS; weft-info lists them"},
    {"gmca", "Weft's knobs are environment variables; weft-info lists them"},
    {"prtemca", "Weft's knobs are environment variables; weft-info lists them"},
    {"iface", "WEFT_OFI_IFACE=NAME chooses the interface"},
    {"launcher", "--launch-agent COMMAND replaces ssh"}, {"bootstrap", "--launch-agent COMMAND replaces ssh"},
    {"rmk", "allocations are detected automatically; WEFT_ALLOCATION=none ignores them"},
    {"prefix", "Weft must be installed at the same path on each host"},
    {"rank-by", "use --map-by slot or node, or a rankfile"},
    {"bynode", "--map-by node"}, {"byslot", "--map-by slot"}, {"bycore", "--map-by core"}, {"npersocket", "--map-by socket with -n"},
    {"cpus-per-proc", "--map-by core:PE=CORES"}, {"cpus-per-rank", "--map-by core:PE=CORES"},
    {"nolocal", "use --host or a host file"},
    {"nooversubscribe", "more ranks than slots or CPUs are always allowed"},
    {"display-map", "use --report-bindings"}, {"print-rank-map", "use --report-bindings"},
    {"outfile-pattern", "--output-filename NAME"}, {"errfile-pattern", "--output-filename NAME"},
    {"app", "give the programs on the command line, separated by ':'"},
    {"configfile", "give the programs on the command line, separated by ':'"},
};

static int option_unknown(const char *arg, const char *name, size_t length)
{
    char word[65];
    const char *nearest = NULL;
    int best = 4;

    snprintf(word, sizeof(word), "%.*s", (int)length, name);
    for (size_t i = 0; i < weft_count(other_launchers); i++)
        if (!strcmp(other_launchers[i].name, word))
            return report(2, "option '%s' is not supported: %s", arg, other_launchers[i].instead);
    for (size_t i = 0; i < weft_count(rows); i++) {
        int distance = word_distance(word, rows[i].name);
        if (distance < best && distance * 2 < (int)strlen(rows[i].name) + 1) {
            best = distance;
            nearest = rows[i].name;
        }
    }
    if (nearest)
        return report(2, "unknown option '%s': did you mean '%s%s'? (mpirun --help lists all)", arg, nearest[1] ? "--" : "-",
                        nearest);
    return report(2, "unknown option '%s' (mpirun --help lists all)", arg);
}

static int word_choose(const char *option, const char *value, const char *const *words, const int *values, int *result)
{
    const char *nearest = words[0];
    char all[120] = "";
    size_t used = 0;

    for (int i = 0; words[i]; i++) {
        if (!strcmp(words[i], value)) {
            *result = values[i];
            return 0;
        }
        if (word_distance(value, words[i]) < word_distance(value, nearest))
            nearest = words[i];
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", words[i]);
    }
    if (word_distance(value, nearest) * 2 > (int)strlen(nearest))
        return report(2, "%s: '%s' is not one of %s", option, value, all);
    return report(2, "%s: unknown value '%s': did you mean '%s'?", option, value, nearest);
}

static int edit_add(env_edit **edits, uint32_t *count, const char *name, const char *value)
{
    env_edit *more = realloc(*edits, (*count + 1) * sizeof(**edits));
    char *text = NULL;

    if (!more)
        return report(1, "out of memory");
    *edits = more;
    if ((value ? asprintf(&text, "%s=%s", name, value) : asprintf(&text, "%s", name)) < 0)
        return report(1, "out of memory");
    more[(*count)++].text = text;
    return 0;
}

static int count_read(const char *option, const char *text, uint32_t *count)
{
    char *end;

    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end)
        return report(2, "%s needs a number of ranks, not '%s'", option, text);
    if (value < 1)
        return report(2, "%s %ld: at least one rank must be started", option, value);
    if (value > RANKS_MAX)
        return report(2, "%s %ld: a job has at most %d ranks", option, value, RANKS_MAX);
    *count = (uint32_t)value;
    return 0;
}

static int seconds_read(const char *option, const char *text, double *seconds)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0) || value > 1e9)
        return report(2, "%s needs a time in seconds above 0, not '%s'", option, text);
    *seconds = value;
    return 0;
}

static int stdin_read(const char *text, int *to)
{
    char *end;

    if (!strcmp(text, "none") || !strcmp(text, "all")) {
        *to = *text == 'n' ? STDIN_NONE : STDIN_ALL;
        return 0;
    }
    long rank = strtol(text, &end, 10);
    if (end == text || *end || rank < 0 || rank >= RANKS_MAX)
        return report(2, "--stdin needs a rank, 'all' or 'none', not '%s'", text);
    *to = (int)rank;
    return 0;
}

/* Parses the modifiers behind the unit, each after ':'. "PE=2", or hydra's "2": units per rank. */
static int modifiers_read(const char *arg, const char *value, const char *at, options *opts)
{
    static const char *const allowed[] = {"oversubscribe", "overload-allowed", "overload", "if-supported"}; /* accepted: the default */
    char word[32];

    for (at += strcspn(at, ":"); *at; at += strcspn(at, ":")) {
        bool is_known = false;
        size_t length = strcspn(++at, ":");
        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        for (size_t i = 0; i < weft_count(allowed); i++)
            is_known |= !strcasecmp(word, allowed[i]);
        if (is_known)
            continue;
        char *count = strncasecmp(word, "pe=", 3) ? word : word + 3, *end;
        long units = strtol(count, &end, 10);
        if (end == count || *end || units < 1 || units > 4096)
            return report(2, "%s %s: only PE=CORES (cores of each rank) and OVERSUBSCRIBE may follow the unit, not '%s'", arg, value,
                            word);
        opts->per_rank = (uint32_t)units;
    }
    return 0;
}

static int placement_read(enum opt_id id, const char *arg, const char *value, options *opts)
{
    static const char *const bind_words[] = {"none", "core", "hwthread", "socket", "package", "numa", "auto", NULL};
    static const int bind_values[] = {BIND_NONE, BIND_CORE, BIND_HWTHREAD, BIND_SOCKET, BIND_SOCKET, BIND_NUMA, BIND_AUTO};
    static const char *const map_words[] = {"slot", "core", "hwthread", "socket", "package", "numa", "node", NULL};
    static const int map_values[] = {BIND_AUTO, BIND_CORE, BIND_HWTHREAD, BIND_SOCKET, BIND_SOCKET, BIND_NUMA, BIND_AUTO};
    char word[32];
    int unit, rc;

    snprintf(word, sizeof(word), "%s", value);
    word[strcspn(word, ":")] = '\0';
    for (char *c = word; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    if (id == OPT_BIND)
        rc = word_choose(arg, word, bind_words, bind_values, &unit);
    else
        rc = word_choose(arg, word, map_words, map_values, &unit);
    if (rc)
        return rc;
    *(id == OPT_BIND ? &opts->bind : &opts->map) = (enum bind_unit)unit;
    if (id == OPT_MAP)
        opts->is_by_node = !strcmp(word, "node");
    return modifiers_read(arg, value, value, opts);
}

/* "ppr:2:node" equals -N 2. */
static int ppr_read(const char *arg, const char *value, options *opts, app *part)
{
    char count[16] = "", unit[16] = "";
    int end = 0;

    if (sscanf(value + 4, "%15[^:]:%15[^:]%n", count, unit, &end) != 2 || strcasecmp(unit, "node"))
        return report(2, "%s %s: the format is ppr:RANKS:node", arg, value);
    int rc = count_read(arg, count, &part->per_node);
    return rc ? rc : modifiers_read(arg, value, value + 4 + end, opts);
}

/* Arguments that MPI 5.0 11.8.4 names for startup mechanisms; ranks read them as knobs (base/knobs.def). */
static int startup_read(enum opt_id id, const char *arg, const char *value, app *part)
{
    static const char *const words[] = {"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return", NULL};
    static const int values[] = {0, 1, 2};
    char lower[32];
    size_t length = 0;
    int index, rc;

    if (id == OPT_KINDS)
        return edit_add(&part->edits, &part->edit_count, "WEFT_MEMORY_ALLOC_KINDS", value);
    for (; value[length] && length + 1 < sizeof(lower); length++) /* the names are case insensitive */
        lower[length] = (char)tolower((unsigned char)value[length]);
    lower[length] = 0;
    rc = word_choose(arg, lower, words, values, &index);
    return rc ? rc : edit_add(&part->edits, &part->edit_count, "WEFT_INITIAL_ERRHANDLER", words[index]);
}

static int environment_read(enum opt_id id, char **values, options *opts, app *part)
{
    char *equal;

    switch (id) {
    case OPT_X:
        equal = strchr(values[0], '=');
        if (!equal && !getenv(values[0]))
            return report(2, "-x %s: the variable is not set, and no value is given (-x %s=VALUE)", values[0], values[0]);
        return edit_add(&part->edits, &part->edit_count, values[0], equal ? NULL : getenv(values[0]));
    case OPT_ENV:
        return edit_add(&part->edits, &part->edit_count, values[0], values[1]);
    case OPT_GENV:
        return edit_add(&opts->edits, &opts->edit_count, values[0], values[1]);
    case OPT_ENVLIST:
        part->env_list = values[0];
        return 0;
    case OPT_GENVLIST:
        opts->env_list = values[0];
        return 0;
    case OPT_ENVNONE:
        part->env_none = true;
        return 0;
    case OPT_GENVNONE:
        opts->env_none = true;
        return 0;
    default:
        opts->env_none = part->env_none = false;
        return 0;
    }
}

/* What an option without a value sets; NULL: it is another one. */
static bool *flag_of(enum opt_id id, options *opts)
{
    return id == OPT_TAG       ? &opts->is_tagged
           : id == OPT_REPORT  ? &opts->is_bind_reported
           : id == OPT_RECOVER ? &opts->recovers
           : id == OPT_VERBOSE ? &opts->is_verbose
                               : NULL;
}

static int option_apply(enum opt_id id, const char *arg, char **values, options *opts, app *part)
{
    static const char *const pmix_words[] = {"auto", "always", "never", NULL};
    static const int pmix_values[] = {PMIX_MODE_AUTO, PMIX_MODE_ALWAYS, PMIX_MODE_NEVER};
    bool *flag = flag_of(id, opts);
    int mode, rc;

    if (flag)
        *flag = true;
    switch (id) {
    case OPT_COUNT:
        part->is_counted = true;
        return count_read(arg, values[0], &part->count);
    case OPT_WDIR:
        part->wdir = values[0];
        return 0;
    case OPT_OUTPUT:
        opts->output = values[0];
        return 0;
    case OPT_STDIN:
        return stdin_read(values[0], &opts->stdin_to);
    case OPT_TIMEOUT:
        return seconds_read(arg, values[0], &opts->timeout_s);
    case OPT_BIND:
    case OPT_MAP:
        if (id == OPT_MAP && !strncasecmp(values[0], "ppr:", 4))
            return ppr_read(arg, values[0], opts, part);
        return placement_read(id, arg, values[0], opts);
    case OPT_HOST:
        opts->has_hosts = true;
        return hosts_add(&opts->hosts, arg, values[0]);
    case OPT_PMIX:
        rc = word_choose(arg, values[0], pmix_words, pmix_values, &mode);
        if (!rc)
            opts->pmix = (enum pmix_mode)mode;
        return rc;
    case OPT_HOSTFILE:
        opts->has_hosts = true;
        return hosts_read(&opts->file_hosts, arg, values[0]);
    case OPT_RANKFILE:
        opts->rankfile = values[0];
        return 0;
    case OPT_AGENT:
        opts->agent = values[0];
        return 0;
    case OPT_ERRHANDLER:
    case OPT_KINDS:
        return startup_read(id, arg, values[0], part);
    case OPT_PER_NODE:
        return count_read(arg, values[0], &part->per_node);
    case OPT_TAG:
    case OPT_REPORT:
    case OPT_RECOVER:
    case OPT_VERBOSE:
    case OPT_NOTHING:
        return 0;
    default:
        return environment_read(id, values, opts, part);
    }
}

/* Parses the option at argv[*at] and advances *at behind its values. 0, or an exit code; -1: help or version was printed. */
static int option_read(int argc, char **argv, int *at, options *opts, app *part)
{
    const char *arg = argv[*at], *name = arg + 1 + (arg[1] == '-');
    size_t length = strcspn(name, "=");
    char *inline_value = name[length] ? (char *)name + length + 1 : NULL, *values[2] = {0};
    const struct opt_row *row = NULL;

    for (size_t i = 0; i < weft_count(rows) && !row; i++)
        if (strlen(rows[i].name) == length && !strncmp(rows[i].name, name, length))
            row = &rows[i];
    size_t digits = name[length] ? 0 : strspn(name + strcspn(name, "0123456789"), "0123456789");
    for (size_t i = 0; i < weft_count(rows) && !row && digits; i++) { /* options with an attached number: -n2, -np4 */
        bool is_count = rows[i].id == OPT_COUNT || rows[i].id == OPT_PER_NODE;
        if (is_count && strlen(rows[i].name) + digits == length && !strncmp(rows[i].name, name, length - digits)) {
            row = &rows[i];
            inline_value = (char *)name + length - digits;
        }
    }
    if (!row)
        return option_unknown(arg, name, length);
    if (row->id == OPT_HELP || row->id == OPT_VERSION) {
        fputs(row->id == OPT_HELP ? help_text : "mpirun (Weft) " PACKAGE_VERSION "\n", stdout);
        return -1;
    }
    ++*at;
    if (inline_value && row->values != 1)
        return report(2, "option '%.*s' takes %s", (int)(length + (size_t)(name - arg)), arg,
                        row->values ? "two values after it" : "no value");
    for (int v = 0; v < row->values; v++) {
        if (inline_value)
            values[v] = inline_value;
        else if (*at < argc)
            values[v] = argv[(*at)++];
        else
            return report(2, "option '%s' needs %s after it", arg, row->values == 2 ? "a name and a value" : "a value");
    }
    return option_apply(row->id, arg, values, opts, part);
}

/* Parses one part, up to ':' or the end. */
static int app_read(int argc, char **argv, int *at, options *opts)
{
    app *more = realloc(opts->apps, (opts->app_count + 1) * sizeof(*more));
    int rc;

    if (!more)
        return report(1, "out of memory");
    opts->apps = more;
    app *part = &more[opts->app_count++];
    *part = (app){.count = 1};
    while (*at < argc && argv[*at][0] == '-' && argv[*at][1]) {
        if (!strcmp(argv[*at], "--")) {
            ++*at;
            break;
        }
        rc = option_read(argc, argv, at, opts, part);
        if (rc)
            return rc;
    }
    if (*at == argc || !strcmp(argv[*at], ":"))
        return report(2, "no program is given%s (usage: mpirun -n RANKS PROGRAM [ARGUMENTS])",
                        opts->app_count > 1 || *at < argc ? " in one of the parts between ':'" : "");
    part->argv = argv + *at;
    while (*at < argc && strcmp(argv[*at], ":"))
        ++*at;
    return 0;
}

/* With --host and --hostfile: keeps the hosts of the file that --host names. */
static int hosts_join(options *opts)
{
    int rc = 0;

    if (opts->hosts.count && opts->file_hosts.count) {
        hosts_resolve(&opts->file_hosts, false);
        rc = hosts_intersect(&opts->file_hosts, &opts->hosts, "the host file", "with --hostfile, --host selects among the file's hosts");
    } else if (opts->file_hosts.count) {
        opts->hosts = opts->file_hosts;
        opts->file_hosts = (host_list){0};
    }
    hosts_free(&opts->file_hosts);
    return rc;
}

int options_parse(int argc, char **argv, options *opts)
{
    const char *limit = getenv("MPIEXEC_TIMEOUT");
    int at = 1, rc;

    *opts = (options){.agent = getenv("WEFT_LAUNCH_AGENT")};
    if (limit && *limit && (rc = seconds_read("MPIEXEC_TIMEOUT", limit, &opts->timeout_s)))
        return rc;
    do {
        rc = app_read(argc, argv, &at, opts);
        if (rc) {
            options_free(opts);
            return rc < 0 ? 0 : rc;
        }
        if (at == argc)
            break;
        argv[at++] = NULL; /* ':' becomes the end of the part's argv */
    } while (1);
    rc = hosts_join(opts);
    if (rc)
        options_free(opts);
    return rc;
}

static void edits_free(env_edit *edits, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(edits[i].text);
    free(edits);
}

void options_free(options *opts)
{
    for (uint32_t i = 0; i < opts->app_count; i++) {
        edits_free(opts->apps[i].edits, opts->apps[i].edit_count);
        free(opts->apps[i].path);
    }
    edits_free(opts->edits, opts->edit_count);
    hosts_free(&opts->hosts);
    hosts_free(&opts->file_hosts);
    for (uint32_t i = 0; opts->slots && i < opts->ranks; i++)
        free(opts->slots[i]);
    free(opts->slots);
    free(opts->allocation);
    free(opts->apps);
    *opts = (options){0};
}

uint32_t fanout_read(void)
{
    const char *text = getenv("WEFT_LAUNCH_FANOUT");
    char *end;
    long count;

    if (!text || !*text)
        return 0;
    count = strtol(text, &end, 10);
    if (!*end && count > 0 && count <= 1024)
        return (uint32_t)count;
    report(0, "WEFT_LAUNCH_FANOUT=%s is ignored: it must be a number from 1 to 1024 (default %d)", text, FANOUT_DEFAULT);
    return 0;
}
