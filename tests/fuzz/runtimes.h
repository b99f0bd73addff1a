/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How runc and crun read their command lines, as models to compare argv_read() with: Go's flag
 * package behind urfave/cli v1 (which sorts a command's options to the front), and getopt_long
 * behind argp (which stops at the first word that is no option). Only create, run and restore.
 */
#ifndef GPUSHARE_TESTS_RUNTIMES_H
#define GPUSHARE_TESTS_RUNTIMES_H

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_WORDS 64

/* What a runtime would do; verb NULL: nothing, as it refuses or has another verb. */
struct model {
	const char *verb, *bundle, *config, *pid_file, *log, *id;
};

/* ---- runc */

struct go_flag {
	const char *name;
	bool is_bool;
	const char *const *commands; /* NULL: all three */
};

static const char *const go_run_restore[] = { "run", "restore", NULL };
static const char *const go_create_run[] = { "create", "run", NULL };
static const char *const go_run[] = { "run", NULL };
static const char *const go_restore[] = { "restore", NULL };

static const struct go_flag go_global[] = {
	{ "debug", true, NULL },	  { "log", false, NULL },  { "log-format", false, NULL },
	{ "root", false, NULL },	  { "criu", false, NULL }, { "rootless", false, NULL },
	{ "systemd-cgroup", true, NULL }, { NULL, false, NULL },
};

static const struct go_flag go_verb[] = {
	{ "bundle", false, NULL },
	{ "b", false, NULL },
	{ "console-socket", false, NULL },
	{ "pidfd-socket", false, go_create_run },
	{ "pid-file", false, NULL },
	{ "no-pivot", true, NULL },
	{ "no-new-keyring", true, go_create_run },
	{ "preserve-fds", false, go_create_run },
	{ "detach", true, go_run_restore },
	{ "d", true, go_run_restore },
	{ "no-subreaper", true, go_run_restore },
	{ "keep", true, go_run },
	{ "image-path", false, go_restore },
	{ "work-path", false, go_restore },
	{ "tcp-established", true, go_restore },
	{ "ext-unix-sk", true, go_restore },
	{ "shell-job", true, go_restore },
	{ "file-locks", true, go_restore },
	{ "manage-cgroups-mode", false, go_restore },
	{ "empty-ns", false, go_restore },
	{ "auto-dedup", true, go_restore },
	{ "lazy-pages", true, go_restore },
	{ "lsm-profile", false, go_restore },
	{ "lsm-mount-context", false, go_restore },
	{ NULL, false, NULL },
};

static bool go_applies(const struct go_flag *flag, const char *verb)
{
	if (!flag->commands)
		return true;
	for (const char *const *c = flag->commands; *c; c++)
		if (verb && strcmp(*c, verb) == 0)
			return true;
	return false;
}

static const struct go_flag *go_find(const struct go_flag *flags, const char *verb,
				     const char *name, size_t len)
{
	for (; flags->name; flags++)
		if (strlen(flags->name) == len && memcmp(flags->name, name, len) == 0 &&
		    go_applies(flags, verb))
			return flags;
	return NULL;
}

static bool go_parse_bool(const char *s)
{
	static const char *const words[] = { "1", "t", "T",	"TRUE",	 "true",  "True", "0",
					     "f", "F", "FALSE", "false", "False", NULL };

	for (const char *const *w = words; *w; w++)
		if (strcmp(*w, s) == 0)
			return true;
	return false;
}

/* urfave/cli: is this word one of the command's options? */
static bool go_is_flag(const char *verb, const char *word)
{
	const char *name = word;

	if (strcmp(word, "-") == 0 || strcmp(word, "--") == 0 || word[0] != '-')
		return false;
	/* two dashes are taken away, then one more if there is one */
	name += strncmp(name, "--", 2) == 0 ? 2 : 0;
	name += name[0] == '-';
	return go_find(go_verb, verb, name, strcspn(name, "=")) != NULL;
}

static void go_reorder(const char *verb, int n, char **words, char **out)
{
	char *rest[MODEL_WORDS];
	bool may_be_value = false;
	int n_out = 0, n_rest = 0;

	for (int i = 0; i < n; i++) {
		char *word = words[i];

		if (may_be_value && !go_is_flag(verb, word)) {
			may_be_value = false;
			out[n_out++] = word;
		} else if (strcmp(word, "--") == 0) {
			while (i < n)
				rest[n_rest++] = words[i++];
		} else if (go_is_flag(verb, word)) {
			out[n_out++] = word;
			may_be_value = !strchr(word, '=');
		} else {
			rest[n_rest++] = word;
		}
	}
	for (int i = 0; i < n_rest; i++)
		out[n_out++] = rest[i];
}

/* flag.FlagSet.Parse: gives the index of the first word that is no option, -1 on an error. */
static int go_parse(const struct go_flag *flags, const char *verb, int n, char **words,
		    struct model *m)
{
	bool seen_b = false, seen_bundle = false;
	int i = 0;

	while (i < n) {
		const char *s = words[i], *name, *value = NULL, *eq;
		const struct go_flag *flag;
		size_t len;

		if (strlen(s) < 2 || s[0] != '-')
			break;
		name = s + 1 + (s[1] == '-');
		if (strcmp(s, "--") == 0) {
			i++;
			break;
		}
		if (!name[0] || name[0] == '-' || name[0] == '=')
			return -1;
		i++;
		eq = strchr(name, '=');
		len = eq ? (size_t)(eq - name) : strlen(name);
		flag = go_find(flags, verb, name, len);
		if (!flag)
			return -1;
		if (eq)
			value = eq + 1;
		if (flag->is_bool) {
			if (value && !go_parse_bool(value))
				return -1;
			continue;
		}
		if (!value && i < n)
			value = words[i++];
		if (!value)
			return -1;
		if (strcmp(flag->name, "bundle") == 0) {
			seen_bundle = true;
			m->bundle = value;
		} else if (strcmp(flag->name, "b") == 0) {
			seen_b = true;
			m->bundle = value;
		} else if (strcmp(flag->name, "pid-file") == 0) {
			m->pid_file = value;
		} else if (strcmp(flag->name, "log") == 0) {
			m->log = value;
		} else if (strcmp(flag->name, "preserve-fds") == 0) {
			char *end;

			(void)strtoll(value, &end, 0);
			if (!*value || *end)
				return -1;
		}
	}
	/* "Cannot use two forms of the same flag" */
	return seen_b && seen_bundle ? -1 : i;
}

static bool is_verb(const char *word)
{
	return strcmp(word, "create") == 0 || strcmp(word, "run") == 0 ||
	       strcmp(word, "restore") == 0;
}

static struct model runc_reads(int argc, char **argv)
{
	struct model none = { 0 }, m = { 0 };
	char *sorted[MODEL_WORDS];
	const char *verb;
	int i, n;

	i = argc > 0 ? go_parse(go_global, NULL, argc - 1, argv + 1, &m) : -1;
	if (i < 0 || i + 1 >= argc || !is_verb(argv[i + 1]))
		return none;
	verb = argv[i + 1];
	m.bundle = m.pid_file = NULL;
	n = argc - i - 2;
	go_reorder(verb, n, argv + i + 2, sorted);
	i = go_parse(go_verb, verb, n, sorted, &m);
	if (i < 0 || n - i != 1)
		return none;
	if (m.bundle && !m.bundle[0])
		m.bundle = NULL; /* the working directory */
	m.id = sorted[i];
	m.verb = verb;
	return m;
}

/* ---- crun */

enum {
	CRUN_FLAG = 1000,
	CRUN_LOG,
	CRUN_FORMAT,
	CRUN_LEVEL,
	CRUN_MANAGER,
	CRUN_ANY,
	CRUN_PID_FILE,
	CRUN_FDS,
	CRUN_EXIT
};

#define CRUN_ARGP                                                                            \
	{ "help", no_argument, NULL, CRUN_EXIT }, { "usage", no_argument, NULL, CRUN_EXIT }, \
		{ "program-name", required_argument, NULL, CRUN_EXIT },                      \
		{ "HANG", optional_argument, NULL, CRUN_EXIT },                              \
	{                                                                                    \
		NULL, 0, NULL, 0                                                             \
	}

static const struct option crun_global[] = {
	{ "debug", no_argument, NULL, CRUN_FLAG },
	{ "cgroup-manager", required_argument, NULL, CRUN_MANAGER },
	{ "systemd-cgroup", no_argument, NULL, CRUN_FLAG },
	{ "log", required_argument, NULL, CRUN_LOG },
	{ "log-format", required_argument, NULL, CRUN_FORMAT },
	{ "log-level", required_argument, NULL, CRUN_LEVEL },
	{ "root", required_argument, NULL, CRUN_ANY },
	{ "rootless", required_argument, NULL, CRUN_ANY },
	{ "version", no_argument, NULL, CRUN_EXIT },
	CRUN_ARGP,
};

static const struct option crun_create[] = {
	{ "bundle", required_argument, NULL, 'b' },
	{ "config", required_argument, NULL, 'f' },
	{ "console-socket", required_argument, NULL, CRUN_ANY },
	{ "preserve-fds", required_argument, NULL, CRUN_FDS },
	{ "no-pivot", no_argument, NULL, CRUN_FLAG },
	{ "pid-file", required_argument, NULL, CRUN_PID_FILE },
	{ "no-subreaper", no_argument, NULL, CRUN_FLAG },
	{ "no-new-keyring", no_argument, NULL, CRUN_FLAG },
	CRUN_ARGP,
};

static const struct option crun_run[] = {
	{ "bundle", required_argument, NULL, 'b' },
	{ "config", required_argument, NULL, 'f' },
	{ "console-socket", required_argument, NULL, CRUN_ANY },
	{ "preserve-fds", required_argument, NULL, CRUN_FDS },
	{ "no-pivot", no_argument, NULL, CRUN_FLAG },
	{ "pid-file", required_argument, NULL, CRUN_PID_FILE },
	{ "no-subreaper", no_argument, NULL, CRUN_FLAG },
	{ "no-new-keyring", no_argument, NULL, CRUN_FLAG },
	{ "detach", no_argument, NULL, 'd' },
	{ "keep", no_argument, NULL, CRUN_FLAG },
	CRUN_ARGP,
};

static bool one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* Index of the first word that is no option; -1 where crun stops. argv[0] is a name. */
static int crun_parse(const struct option *options, const char *shorts, int argc, char **argv,
		      struct model *m)
{
	static const char *const formats[] = { "text", "json", NULL };
	static const char *const levels[] = { "error", "warning", "debug", NULL };
	static const char *const managers[] = { "cgroupfs", "systemd", "disabled", NULL };
	char *end;
	int opt;

	optind = 0; /* a new scan */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		switch (opt) {
		case 1: /* the first word that is no option */
			return optind - 1;
		case 'b':
			m->bundle = optarg;
			break;
		case 'f':
			m->config = optarg;
			break;
		case CRUN_PID_FILE:
			m->pid_file = optarg;
			break;
		case CRUN_LOG:
			m->log = optarg;
			break;
		case CRUN_FORMAT:
			if (!one_of(optarg, formats))
				return -1;
			break;
		case CRUN_LEVEL:
			if (!one_of(optarg, levels))
				return -1;
			break;
		case CRUN_MANAGER:
			if (!one_of(optarg, managers))
				return -1;
			break;
		case CRUN_FDS:
			(void)strtol(optarg, &end, 10);
			if (!*optarg || *end)
				return -1;
			break;
		case 'd':
		case CRUN_ANY:
		case CRUN_FLAG:
			break;
		default:
			return -1;
		}
	}
	return optind;
}

static struct model crun_reads(int argc, char **argv)
{
	struct model none = { 0 }, m = { 0 };
	const char *verb;
	int i, n;

	i = argc > 0 ? crun_parse(crun_global, "-?vV", argc, argv, &m) : -1;
	if (i < 0 || i >= argc || !is_verb(argv[i]) || strcmp(argv[i], "restore") == 0)
		return none;
	verb = argv[i];
	argc -= i;
	argv += i;
	n = strcmp(verb, "run") == 0 ? crun_parse(crun_run, "-b:f:d?", argc, argv, &m) :
				       crun_parse(crun_create, "-b:f:?", argc, argv, &m);
	if (n < 0 || argc - n != 1)
		return none;
	m.id = argv[n];
	m.verb = verb;
	return m;
}

#endif
