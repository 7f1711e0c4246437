/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_glue: linked into every module; forwards the functions of src/base that transports use to the library that loaded it. The
 * makefile defines WEFT_MODULE_OPS as the module's table.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "transport/module.h"

extern const weft_iface_ops WEFT_MODULE_OPS;

weft_knobs weft_knob; /* a copy: knobs do not change after modules are loaded */
static const weft_services *library;

int weft_fail(int code, const char *format, ...)
{
    char text[512];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    return library->fail(code, "%s", text);
}

const char *weft_fail_text(int code) { return library->fail_text(code); }

void weft_log(enum weft_log_level level, const char *format, ...)
{
    char text[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    library->log(level, "%s", text);
}

__attribute__((visibility("default"))) weft_module_entry weft_module;

const weft_iface_ops *weft_module(const weft_services *services, const char **why)
{
    if (services->version != WEFT_MODULE_VERSION || strcmp(services->release, PACKAGE_VERSION) != 0) {
        *why = "is of another version than the library: install both again";
        return NULL;
    }
    library = services;
    weft_knob = *services->knob;
    return &WEFT_MODULE_OPS;
}
