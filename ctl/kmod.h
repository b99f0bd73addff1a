/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl kmod: what its parts share. */
#ifndef GPUSHARE_CTL_KMOD_H
#define GPUSHARE_CTL_KMOD_H

#include <jansson.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/kevent.h"
#include "common/klink.h"
#include "ctl/ctl.h"
#include "ctl/names.h"

/* The parts; argv[0] is the part's name. They give the exit status. */
int ctl_kmod_status(int argc, char **argv);
int ctl_kmod_watch(int argc, char **argv);
int ctl_kmod_events(int argc, char **argv);

/* Opens a link to the module; CTL_FAILED after telling, with what to do where that is known. */
int ctl_kmod_open(struct gs_klink **ret);

/* Prints the whole state as tables, or as a JSON value (which the caller owns). */
void ctl_kmod_print(const struct gs_kstate *state);
json_t *ctl_kmod_json(const struct gs_kstate *state);

/* The holdings alone; @names (NULL: none) knows whose they are. */
void ctl_kmod_print_holdings(const struct gs_kstate *state, struct ctl_names *names);

/*
 * A device number for people: the path of a node in /dev that has it, else "major:minor". The text
 * is valid until the program ends.
 */
const char *ctl_kmod_dev(uint32_t dev);

/* A device number as JSON: "major:minor". */
json_t *ctl_kmod_dev_json(uint32_t dev);

/* "open,ioctl" of 1 << enum gs_kind each; the caller frees. */
char *ctl_kmod_funcs(uint32_t funcs);

/*
 * What happened, in a sentence, with containers' names in the place of the module's where @names
 * (NULL: none) knows them; the caller frees.
 */
char *ctl_kmod_event_text(const struct gs_kevent *event, struct ctl_names *names);

/* The event with all that it tells, and with @names the members "holder" and "container". */
json_t *ctl_kmod_event_json(const struct gs_kevent *event, struct ctl_names *names);

/*
 * Follows the events, as @verb with the options of `kmod events`; @named: tells them with the names
 * that the registry has. Gives the exit status.
 */
int ctl_kmod_follow(const struct ctl_verb *verb, int argc, char **argv, bool named);

/* Prints a line for people, "HH:MM:SS text", of CLOCK_BOOTTIME @ns (0: now), and flushes it. */
__attribute__((format(printf, 2, 3))) void ctl_kmod_line(uint64_t ns, const char *fmt, ...);

/* Prints JSON as one line, and flushes it. Takes the reference. */
void ctl_kmod_json_line(json_t *json);

#endif
