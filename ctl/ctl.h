/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: what its verbs share. Exit status: 0, 1 for a failure, 2 for a wrong call. */
#ifndef GPUSHARE_CTL_CTL_H
#define GPUSHARE_CTL_CTL_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>

#include "common/config.h"
#include "common/err.h"

#define CTL_NAME "gpusharectl"

enum ctl_exit { CTL_OK, CTL_FAILED, CTL_USAGE };

struct ctl_verb {
	const char *name;
	const char *summary; /* one line, for the list of verbs */
	const char *help; /* all of --help; ends with a newline and holds an example */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; gives the exit status */
};

extern const struct ctl_verb ctl_status, ctl_inspect, ctl_lend, ctl_reclaim, ctl_events, ctl_grant,
	ctl_containers, ctl_spec, ctl_config, ctl_kmod, ctl_setup, ctl_doctor, ctl_top;

/* Those that are about the cluster: what kubectl-gpushare has. */
extern const struct ctl_verb ctl_cluster_inspect, ctl_cluster_top;

/* How we were called, for messages: CTL_NAME or CTL_KUBECTL_NAME. */
#define CTL_KUBECTL_NAME "kubectl gpushare"
extern const char *ctl_name;

/* Prints the verb's help to stdout; CTL_OK. */
int ctl_help(const struct ctl_verb *verb);

/* Says on stderr what is wrong with the call and where help is; CTL_USAGE. */
__attribute__((format(printf, 2, 3))) int ctl_misused(const struct ctl_verb *verb, const char *fmt,
						      ...);

/* Prints the error to stderr, and what to do where that is known; CTL_FAILED. */
int ctl_failed(const struct gs_err *err);

/*
 * Makes every byte '?' that a terminal would obey (control characters in a pod's names, C1's too),
 * that turns the order of what is shown, or that is no UTF-8. Gives @s.
 */
char *ctl_printable(char *s);

/* How many bytes the UTF-8 character at @text has, and which it is; 0: it is none. */
size_t ctl_read_char(const char *text, unsigned int *ret);

/* Would a terminal obey it (C0, C1), or show what follows in another order (Unicode's marks)? */
bool ctl_is_order(unsigned int c);

/* "gpusharectl: <text>" to stderr. */
__attribute__((format(printf, 1, 2))) void ctl_say(const char *fmt, ...);

/*
 * getopt_long(3) with the verb's own messages: gives '?' after telling what is wrong. @shorts
 * begins with ':'.
 */
int ctl_getopt(const struct ctl_verb *verb, int argc, char **argv, const char *shorts,
	       const struct option *longs);

enum ctl_format { CTL_TABLE, CTL_WIDE, CTL_JSON, CTL_YAML };
enum { CTL_ALSO_WIDE = 1, CTL_ALSO_YAML = 2 };

/*
 * Reads the value of -o: "json", and what @also has bits for. CTL_USAGE, after telling, where it is
 * none.
 */
int ctl_read_format(const struct ctl_verb *verb, const char *value, unsigned int also,
		    enum ctl_format *ret);

/* Loads the configuration into an uninitialised @config; CTL_FAILED, after telling, if broken. */
int ctl_load_config(struct gs_config *config);

/* Prints the value, indented, with a newline. Takes the reference. */
void ctl_print_json(json_t *json);

#endif
