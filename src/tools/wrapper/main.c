/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main: mpicc and mpicxx. Runs the compiler with the include path of mpi.h, the library and its RUNPATH. The name in argv[0] selects the
 * language. Accepts the query options of MPICH's and Open MPI's wrappers (-show, -showme:...), which build systems use.
 * Invariant: all other arguments reach the compiler unchanged and in order.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/wrapper/line.h"
#include "tools/wrapper/prefix.h"

typedef struct wrapper {
    const char *name; /* last component of argv[0] */
    bool is_cxx;
    house house;
    line compiler, compile, link; /* the compiler's command; flags added to compile; flags added to link */
    line user;                    /* the user's arguments */
    bool has_input;               /* an argument names a file */
    bool stops_early;             /* -c, -E, ...: no link step */
} wrapper;

enum question { ASK_NOTHING, ASK_SHOW, ASK_COMPILE_INFO, ASK_LINK_INFO, ASK_COMPILE, ASK_LINK, ASK_INCDIRS, ASK_LIBDIRS, ASK_LIBS,
               ASK_COMMAND,
                ASK_VERSION, ASK_HELP };

static const struct {
    const char *word;
    enum question question;
} questions[] = {
    {"show", ASK_SHOW}, {"showme", ASK_SHOW}, {"showme:compile", ASK_COMPILE}, {"showme:link", ASK_LINK},
    {"showme:incdirs", ASK_INCDIRS}, {"showme:libdirs", ASK_LIBDIRS}, {"showme:libs", ASK_LIBS}, {"showme:command", ASK_COMMAND},
    {"showme:version", ASK_VERSION}, {"showme:help", ASK_HELP}, {"compile_info", ASK_COMPILE_INFO}, {"compile-info", ASK_COMPILE_INFO},
    {"link_info", ASK_LINK_INFO}, {"link-info", ASK_LINK_INFO},
};

static const char help[] =
    "%s: compiles and links MPI programs with Weft %s.\n"
    "All arguments go to the compiler, except these:\n"
    "  -show, -showme          print the command line, do not run it\n"
    "  -showme:compile :link :incdirs :libdirs :libs :command :version\n"
    "                          print that part of it\n"
    "  -compile_info           print the command that compiles\n"
    "  -link_info              print the command that links\n"
    "  -cc=NAME, -cxx=NAME     use this compiler; or set MPI_CC, MPI_CXX (WEFT_, OMPI_, MPICH_ too)\n";

/* The query that an argument asks, by one or two dashes. */
static enum question question_of(const char *word)
{
    if (word[0] != '-')
        return ASK_NOTHING;
    word += word[1] == '-' ? 2 : 1;
    for (size_t i = 0; i < weft_count(questions); i++)
        if (strcmp(word, questions[i].word) == 0)
            return questions[i].question;
    return ASK_NOTHING;
}

/* mpicxx, mpic++, mpiCC and links with similar names. */
static bool is_cxx_name(const char *name)
{
    return strstr(name, "xx") || strstr(name, "++") || strstr(name, "CC");
}

static void compiler_choose(wrapper *self)
{
    static const char *const names[2][4] = {{"WEFT_CC", "MPI_CC", "OMPI_CC", "MPICH_CC"}, {"WEFT_CXX", "MPI_CXX", "OMPI_CXX", "MPICH_CXX"}};
    for (size_t i = 0; i < 4; i++) {
        const char *value = getenv(names[self->is_cxx][i]);
        if (value && *value) {
            line_add_split(&self->compiler, value);
            return;
        }
    }
    line_add_split(&self->compiler, self->is_cxx ? WEFT_CXX : WEFT_CC);
}

static void parts_make(wrapper *self)
{
    line_add_joined(&self->compile, "-I", self->house.include);
    line_add_split(&self->compile, WEFT_SANITIZE); /* a sanitized library needs the sanitizer's runtime first */
    line_add_split(&self->link, WEFT_SANITIZE);
    line_add_joined(&self->link, "-L", self->house.lib);
    line_add_joined(&self->link, "-Wl,-rpath,", self->house.lib);
    line_add(&self->link, "-Wl,--enable-new-dtags"); /* RUNPATH: LD_LIBRARY_PATH still wins */
    line_add(&self->link, "-lmpi_abi");
}

/* Updates has_input and stops_early by an argument. Returns how many following arguments belong to it. */
static int word_weigh(wrapper *self, const char *word)
{
    static const char *const early[] = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"};
    static const char *const pairs[] = {"-o", "-x", "-I", "-L", "-D", "-U", "-l", "-T", "-u", "-z", "-include", "-imacros", "-isystem",
                                        "-iquote", "-idirafter",
                                        "-MF", "-MT", "-MQ", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang", "-target", "-arch",
                                        "-aux-info", "-B", "-e", "-A", "-wrapper", "--param"};
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

static enum question words_read(wrapper *self, int argc, char **argv)
{
    enum question asked = ASK_NOTHING;
    int skip = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (skip) {
            skip--;
            line_add(&self->user, word);
            continue;
        }
        enum question question = question_of(word);
        if (question) {
            asked = question;
            continue;
        }
        const char *named = strncmp(word, "-cc=", 4) == 0 ? word + 4 : strncmp(word, "-cxx=", 5) == 0 ? word + 5 : NULL;
        if (named) {
            self->compiler.count = 0;
            line_add_split(&self->compiler, named);
            continue;
        }
        skip = word_weigh(self, word);
        line_add(&self->user, word);
    }
    return asked;
}

static int answer(const wrapper *self, enum question asked)
{
    static line all; /* static: still reachable at exit, for leak checkers */
    switch (asked) {
    case ASK_COMPILE_INFO:
        line_add_all(&all, &self->compiler);
        line_add_all(&all, &self->compile);
        break;
    case ASK_LINK_INFO:
        line_add_all(&all, &self->compiler);
        line_add_all(&all, &self->link);
        break;
    case ASK_COMPILE: line_add_all(&all, &self->compile); break;
    case ASK_LINK: line_add_all(&all, &self->link); break;
    case ASK_INCDIRS: line_add(&all, self->house.include); break;
    case ASK_LIBDIRS: line_add(&all, self->house.lib); break;
    case ASK_LIBS: line_add(&all, "mpi_abi"); break;
    case ASK_COMMAND: line_add_all(&all, &self->compiler); break;
    case ASK_VERSION: printf("%s: Weft %s\n", self->name, PACKAGE_VERSION); return 0;
    case ASK_HELP: printf(help, self->name, PACKAGE_VERSION); return 0;
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
    self.is_cxx = is_cxx_name(self.name);
    house_find(&self.house);
    compiler_choose(&self);
    parts_make(&self);
    enum question asked = words_read(&self, argc, argv);
    if (argc < 2) {
        fprintf(stderr, "%s: no input: say what to compile, or -showme:help\n", self.name);
        return 2;
    }
    if (asked > ASK_SHOW)
        return answer(&self, asked);

    static line all;
    line_add_all(&all, &self.compiler);
    line_add_all(&all, &self.compile);
    line_add_all(&all, &self.user);
    /* -show without a file shows compile and link flags */
    if (!self.stops_early && (self.has_input || asked == ASK_SHOW))
        line_add_all(&all, &self.link);
    if (asked == ASK_SHOW) {
        line_print(&all);
        return 0;
    }
    if (!all.count || !self.compiler.count) {
        fprintf(stderr, "%s: no compiler is named: -cc= is empty\n", self.name);
        return 2;
    }
    execvp(all.words[0], (char *const *)(uintptr_t)all.words);
    fprintf(stderr, "%s: cannot run the compiler %s: %s. Install it, or name another with -cc= or MPI_CC\n", self.name, all.words[0],
            strerror(errno));
    return 127;
}
