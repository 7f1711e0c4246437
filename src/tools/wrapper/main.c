/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main: mpicc, mpicxx and mpifort. Runs the compiler with the include path of mpi.h, mpif.h or the modules, the library and its RUNPATH.
 * The name in argv[0] selects the language. Accepts the query options of MPICH's and Open MPI's wrappers (-show, -showme:...), which build
 * systems use.
 * Invariant: all other arguments reach the compiler unchanged and in order.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/wrapper/line.h"
#include "tools/wrapper/prefix.h"

enum language { C, CXX, FORTRAN };

typedef struct wrapper {
    const char *name; /* last component of argv[0] */
    enum language language;
    char modules[PATH_MAX + 64]; /* folder of the compiler's module files */
    prefix prefix;
    line compiler, compile, link; /* the compiler's command; flags added to compile; flags added to link */
    line user;                    /* the user's arguments */
    bool has_input;               /* an argument names a file */
    bool stops_early;             /* -c, -E, ...: no link step */
} wrapper;

enum query
{
    QUERY_NONE, QUERY_SHOW, QUERY_COMPILE_INFO, QUERY_LINK_INFO, QUERY_COMPILE, QUERY_LINK, QUERY_INCDIRS, QUERY_LIBDIRS, QUERY_LIBS,
    QUERY_COMMAND, QUERY_VERSION, QUERY_HELP
};

static const struct {
    const char *word;
    enum query query;
} queries[] = {
    {"show", QUERY_SHOW}, {"showme", QUERY_SHOW}, {"showme:compile", QUERY_COMPILE}, {"showme:link", QUERY_LINK},
    {"showme:incdirs", QUERY_INCDIRS}, {"showme:libdirs", QUERY_LIBDIRS}, {"showme:libs", QUERY_LIBS},
    {"showme:command", QUERY_COMMAND}, {"showme:version", QUERY_VERSION}, {"showme:help", QUERY_HELP},
    {"compile_info", QUERY_COMPILE_INFO}, {"compile-info", QUERY_COMPILE_INFO}, {"link_info", QUERY_LINK_INFO},
    {"link-info", QUERY_LINK_INFO},
};

static const char help[] =
    "%s: compiles and links MPI programs with Weft %s.\n"
    "All arguments go to the compiler, except these:\n"
    "  -show, -showme          print the command line, do not run it\n"
    "  -showme:compile :link :incdirs :libdirs :libs :command :version\n"
    "                          print that part of it\n"
    "  -compile_info           print the command that compiles\n"
    "  -link_info              print the command that links\n"
    "  -cc=NAME, -cxx=NAME, -fc=NAME\n"
    "                          use this compiler; or set MPI_CC, MPI_CXX, MPI_FC (WEFT_, OMPI_, MPICH_ too)\n";

/* The query that an argument names, with one or two dashes. */
static enum query query_of(const char *word)
{
    if (word[0] != '-')
        return QUERY_NONE;
    word += word[1] == '-' ? 2 : 1;
    for (size_t i = 0; i < weft_count(queries); i++)
        if (strcmp(word, queries[i].word) == 0)
            return queries[i].query;
    return QUERY_NONE;
}

/* mpicxx, mpic++, mpiCC, mpifort, mpif77, mpif90 and links with similar names. */
static enum language language_of(const char *name)
{
    if (strstr(name, "xx") || strstr(name, "++") || strstr(name, "CC"))
        return CXX;
    return strncmp(name, "mpif", 4) == 0 ? FORTRAN : C;
}

static void compiler_choose(wrapper *self)
{
    static const char *const names[3][4] = {{"WEFT_CC", "MPI_CC", "OMPI_CC", "MPICH_CC"}, {"WEFT_CXX", "MPI_CXX", "OMPI_CXX", "MPICH_CXX"},
                                            {"WEFT_FC", "MPI_FC", "OMPI_FC", "MPICH_FC"}};
    static const char *const built[3] = {WEFT_CC, WEFT_CXX, WEFT_FC};
    for (size_t i = 0; i < 4; i++) {
        const char *value = getenv(names[self->language][i]);
        if (value && *value) {
            line_add_split(&self->compiler, value);
            return;
        }
    }
    line_add_split(&self->compiler, built[self->language]);
}

/* The folder of the module files of the selected compiler, named after it without path and version (gfortran-12: gfortran); that of the
 * compiler that Weft was built with if there is none. */
static void modules_find(wrapper *self)
{
    const char *path = self->compiler.count ? self->compiler.words[0] : "", *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name), end = length;
    while (end && strchr("0123456789.", name[end - 1]))
        end--;
    if (end && end < length && name[end - 1] == '-')
        length = end - 1;
    snprintf(self->modules, sizeof(self->modules), "%s/weft/%.*s", self->prefix.include, (int)(length < 32 ? length : 32), name);
    if (access(self->modules, R_OK))
        snprintf(self->modules, sizeof(self->modules), "%s/weft/%s", self->prefix.include, WEFT_FC_NAME);
}

/* Flags that depend on the compiler are added when it is known. */
static void flags_make(wrapper *self)
{
    line_add_joined(&self->compile, "-I", self->prefix.include);
    if (self->language == FORTRAN) {
        modules_find(self);
        line_add_joined(&self->compile, "-I", self->modules);
    }
    line_add_split(&self->compile, WEFT_SANITIZE); /* a sanitized library needs the sanitizer's runtime first */
    line_add_split(&self->link, WEFT_SANITIZE);
    line_add_joined(&self->link, "-L", self->prefix.lib);
    line_add_joined(&self->link, "-Wl,-rpath,", self->prefix.lib);
    line_add(&self->link, "-Wl,--enable-new-dtags"); /* RUNPATH: LD_LIBRARY_PATH still wins */
    if (self->language == FORTRAN)
        line_add(&self->link, "-lmpifort_abi");
    line_add(&self->link, "-lmpi_abi");
}

/* Updates has_input and stops_early by an argument. Returns how many following arguments belong to it. */
static int argument_classify(wrapper *self, const char *word)
{
    static const char *const early[] = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"};
    static const char *const pairs[] = {"-o", "-x", "-I", "-L", "-D", "-U", "-l", "-T", "-u", "-z", "-include", "-imacros", "-isystem",
                                        "-iquote", "-idirafter", "-MF", "-MT", "-MQ", "-Xlinker", "-Xassembler", "-Xpreprocessor",
                                        "-Xclang", "-J", "-target", "-arch", "-aux-info", "-B", "-e", "-A", "-wrapper", "--param"};
    for (size_t i = 0; i < weft_count(early); i++)
        if (strcmp(word, early[i]) == 0)
            self->stops_early = true;
    for (size_t i = 0; i < weft_count(pairs); i++)
        if (strcmp(word, pairs[i]) == 0)
            return 1;
    if (word[0] != '-' || word[1] == 0)
        self->has_input = true;
    return 0;
}

static enum query arguments_read(wrapper *self, int argc, char **argv)
{
    enum query query = QUERY_NONE;
    int skip = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (skip) {
            skip--;
            line_add(&self->user, word);
            continue;
        }
        enum query found = query_of(word);
        if (found) {
            query = found;
            continue;
        }
        const char *named = strncmp(word, "-cc=", 4) == 0 ? word + 4 : strncmp(word, "-cxx=", 5) == 0 ? word + 5 : NULL;
        if (!named && self->language == FORTRAN)
            named = strncmp(word, "-fc=", 4) == 0 ? word + 4 : NULL;
        if (named) {
            self->compiler.count = 0;
            line_add_split(&self->compiler, named);
            continue;
        }
        skip = argument_classify(self, word);
        line_add(&self->user, word);
    }
    return query;
}

static int query_answer(const wrapper *self, enum query query)
{
    static line all; /* static: still reachable at exit, for leak checkers */
    switch (query) {
    case QUERY_COMPILE_INFO:
        line_add_all(&all, &self->compiler);
        line_add_all(&all, &self->compile);
        break;
    case QUERY_LINK_INFO:
        line_add_all(&all, &self->compiler);
        line_add_all(&all, &self->link);
        break;
    case QUERY_COMPILE: line_add_all(&all, &self->compile); break;
    case QUERY_LINK: line_add_all(&all, &self->link); break;
    case QUERY_INCDIRS:
        line_add(&all, self->prefix.include);
        if (self->language == FORTRAN)
            line_add(&all, self->modules);
        break;
    case QUERY_LIBDIRS: line_add(&all, self->prefix.lib); break;
    case QUERY_LIBS:
        if (self->language == FORTRAN)
            line_add(&all, "mpifort_abi");
        line_add(&all, "mpi_abi");
        break;
    case QUERY_COMMAND: line_add_all(&all, &self->compiler); break;
    case QUERY_VERSION: printf("%s: Weft %s\n", self->name, PACKAGE_VERSION); return 0;
    case QUERY_HELP: printf(help, self->name, PACKAGE_VERSION); return 0;
    default: return 2;
    }
    line_print(&all);
    return 0;
}

int main(int argc, char **argv)
{
    static wrapper self;
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    self.name = slash ? slash + 1 : argc > 0 ? argv[0] : "mpicc";
    self.language = language_of(self.name);
    prefix_find(&self.prefix);
    compiler_choose(&self);
    enum query query = arguments_read(&self, argc, argv);
    flags_make(&self);
    if (argc < 2) {
        fprintf(stderr, "%s: no arguments; name a source file, or see %s -showme:help\n", self.name, self.name);
        return 2;
    }
    if (query > QUERY_SHOW)
        return query_answer(&self, query);

    static line all;
    line_add_all(&all, &self.compiler);
    line_add_all(&all, &self.compile);
    line_add_all(&all, &self.user);
    /* -show without a file shows compile and link flags */
    if (!self.stops_early && (self.has_input || query == QUERY_SHOW))
        line_add_all(&all, &self.link);
    if (query == QUERY_SHOW) {
        line_print(&all);
        return 0;
    }
    if (!all.count || !self.compiler.count) {
        fprintf(stderr, "%s: -cc= names no compiler\n", self.name);
        return 2;
    }
    execvp(all.words[0], (char *const *)(uintptr_t)all.words);
    fprintf(stderr, "%s: cannot run the compiler %s: %s. Install it, or select another by -cc= or MPI_CC\n", self.name, all.words[0],
            strerror(errno));
    return 127;
}
