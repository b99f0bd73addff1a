// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the command line of an OCI runtime. runc's parser is Go's flag package behind
 * urfave/cli, crun's is argp: "-b=X" is X to the one and "=X" to the other, "-bundle X" a long
 * option to the one and "-b undle" to the other, "--bund X" an error to the one and "--bundle X"
 * to the other. A wrapper that guesses may edit one bundle while the runtime starts another.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/argv.h"

struct verb_row {
	const char *word;
	enum verb verb;
	const char *values; /* options that take a value, between spaces; all others are flags */
};

/* Of runc 1.0 to 1.4 and crun 1.x, both. */
static const char global_values[] = " log log-format log-level root criu rootless cgroup-manager ";

/* crun's alone: only getopt_long takes a beginning for the whole name. */
static const char crun_values[] = " log log-format log-level root rootless cgroup-manager ";

static const struct verb_row verbs[] = {
	{ "checkpoint", VERB_OTHER,
	  " image-path work-path parent-path page-server manage-cgroups-mode empty-ns status-fd " },
	{ "create", VERB_CREATE,
	  " bundle b config f console-socket pidfd-socket pid-file preserve-fds " },
	{ "delete", VERB_DELETE, " " },
	{ "events", VERB_OTHER, " interval " },
	{ "exec", VERB_OTHER,
	  " process p cwd env e user u additional-gids g cap c apparmor process-label"
	  " console-socket pidfd-socket pid-file preserve-fds cgroup " },
	{ "features", VERB_OTHER, " " },
	{ "kill", VERB_OTHER, " " },
	{ "list", VERB_OTHER, " format f " },
	{ "mounts", VERB_OTHER, " " },
	{ "pause", VERB_OTHER, " " },
	{ "ps", VERB_OTHER, " format f " },
	{ "restore", VERB_RESTORE,
	  " bundle b console-socket image-path work-path pid-file manage-cgroups-mode empty-ns"
	  " lsm-profile lsm-mount-context " },
	{ "resume", VERB_OTHER, " " },
	{ "run", VERB_RUN,
	  " bundle b config f console-socket pidfd-socket pid-file preserve-fds " },
	{ "spec", VERB_OTHER, " bundle b " },
	{ "start", VERB_OTHER, " " },
	{ "state", VERB_OTHER, " " },
	{ "update", VERB_OTHER,
	  " resources r blkio-weight cpu-period cpu-quota cpu-burst cpu-share cpu-rt-period"
	  " cpu-rt-runtime cpu-idle cpuset-cpus cpuset-mems kernel-memory kernel-memory-tcp memory"
	  " memory-reservation memory-swap pids-limit l3-cache-schema mem-bw-schema " },
};

/* Flags that runc also takes with one dash and whose letters are not crun's short options. */
static const char one_dash_flags[] =
	" d detach keep no-pivot no-new-keyring no-subreaper tcp-established ext-unix-sk"
	" shell-job lazy-pages file-locks auto-dedup ";

struct walk {
	int argc, i;
	char **argv;
	struct command *cmd;
	const char *values; /* of the verb, or the global ones */
	bool strict; /* the verb is one whose bundle we read */
};

static const struct verb_row *find_verb(const char *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].word, word) == 0)
			return &verbs[i];
	return NULL;
}

/* Is the word in a list of words between spaces? @whole: or at least the beginning of one? */
static bool in_list(const char *list, const char *word, size_t len, bool whole)
{
	const char *p = list;

	if (memchr(word, ' ', len)) /* two words of the list are no word */
		return false;
	while (len && (p = strchr(p, ' ')) != NULL && p[1]) {
		p++;
		if (strncmp(p, word, len) == 0 && (!whole || p[len] == ' '))
			return true;
	}
	return false;
}

static bool takes_value(const struct walk *w, const char *name, size_t len)
{
	return in_list(w->values, name, len, true);
}

static int unclear(const char *arg, const char *why, struct gs_err *err)
{
	return gs_err_set(err, EINVAL, "command line: \"%s\": %s", arg, why);
}

static bool is_word(const char *name, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(name, word, len) == 0;
}

/* Keeps the value of an option that we know. */
static int set(struct walk *w, const char *name, size_t len, const char *value, const char *arg,
	       struct gs_err *err)
{
	if (is_word(name, len, "log")) {
		w->cmd->log = value;
	} else if (is_word(name, len, "log-format")) {
		w->cmd->log_format = value;
	} else if (is_word(name, len, "root")) {
		w->cmd->root = value;
	} else if (is_word(name, len, "pid-file")) {
		w->cmd->pid_file = value;
	} else if (w->strict && (is_word(name, len, "bundle") || is_word(name, len, "b"))) {
		if (!*value) /* the working directory to runc, an error to crun */
			return unclear(arg, "an empty bundle path", err);
		w->cmd->bundle = value;
	} else if (w->strict && (is_word(name, len, "config") || is_word(name, len, "f"))) {
		return unclear(arg,
			       "a config file other than the bundle's config.json cannot be used "
			       "with gpushare-runtime",
			       err);
	}
	return 0;
}

/* An option that takes a value: behind '=', or the next word. */
static int take_value(struct walk *w, const char *name, size_t len, const char *eq,
		      struct gs_err *err)
{
	const char *arg = w->argv[w->i];
	const char *value = eq ? eq + 1 : NULL;

	if (!value && w->i + 1 < w->argc)
		value = w->argv[++w->i];
	if (value)
		return set(w, name, len, value, arg, err);
	/* runc sorts the words first, and takes the next one of those that are no options */
	return w->strict ? unclear(arg, "lacks its value", err) : 0;
}

/*
 * The one option with a value that @name begins, as getopt_long (crun) takes it; NULL where there
 * is none, or several: that is an error to runc and crun both.
 */
static const char *abbreviated(const char *list, const char *name, size_t len)
{
	const char *found = NULL;

	for (const char *p = list; len && (p = strchr(p, ' ')) != NULL && p[1];) {
		p++;
		if (strncmp(p, name, len) != 0)
			continue;
		if (!found)
			found = p;
		else if (strncmp(p, found, strcspn(found, " ")) != 0)
			return NULL; /* root and rootless are one key to crun, and no two */
	}
	return found;
}

/* A word with two dashes; in front of the verb, where there are no clusters, also with one. */
static int long_option(struct walk *w, bool global, struct gs_err *err)
{
	const char *arg = w->argv[w->i];
	const char *name = arg + (arg[1] == '-' ? 2 : 1);
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const char *whole;

	if (takes_value(w, name, len))
		return take_value(w, name, len, eq, err);
	whole = global && arg[1] == '-' ? abbreviated(crun_values, name, len) : NULL;
	if (whole)
		return take_value(w, whole, strcspn(whole, " "), eq, err);
	if (w->strict && in_list(w->values, name, len, false))
		return unclear(arg,
			       "an abbreviated option, which not every runtime takes; write it out",
			       err);
	/* unknown to us: a flag, unless it is global and what follows is no verb */
	if (global && !eq && w->i + 2 < w->argc && w->argv[w->i + 1][0] != '-' &&
	    !find_verb(w->argv[w->i + 1]) && find_verb(w->argv[w->i + 2]))
		w->i++;
	return 0;
}

/*
 * A word with one dash behind a verb whose bundle we read. To runc it is one option, to crun a
 * cluster of short ones, of which b and f take the rest of the word as their value.
 */
static int strict_short_option(struct walk *w, const char *name, const char *eq, size_t len,
			       struct gs_err *err)
{
	static const char differs[] = "runc and crun read this form differently; use --bundle";
	const char *arg = w->argv[w->i];

	if (strcmp(name, "b") == 0)
		return take_value(w, name, len, NULL, err);
	if (is_word(name, len, "bundle") || (name[0] == 'b' && name[1] == '='))
		return unclear(arg, differs, err);
	if (is_word(name, len, "config") || (name[0] == 'f' && w->cmd->verb != VERB_RESTORE))
		return set(w, "f", 1, "", arg, err);
	if (takes_value(w, name, len)) /* runc's long option; crun has no such short ones */
		return take_value(w, name, len, eq, err);
	if (in_list(one_dash_flags, name, len, true))
		return 0;
	if (name[0] == 'b') {
		w->cmd->bundle = name + 1; /* crun's; runc refuses it */
		return 0;
	}
	if (strpbrk(name, "bf"))
		return unclear(arg, "several short options in one word; write them out", err);
	return 0;
}

static int short_option(struct walk *w, struct gs_err *err)
{
	const char *name = w->argv[w->i] + 1;
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);

	if (w->strict)
		return strict_short_option(w, name, eq, len, err);
	return takes_value(w, name, len) ? take_value(w, name, len, eq, err) : 0;
}

/* Up to and with the verb; w->i is left behind it. */
static int walk_global(struct walk *w, struct gs_err *err)
{
	for (; w->i < w->argc; w->i++) {
		const char *arg = w->argv[w->i];
		const struct verb_row *row;
		int r;

		if (arg[0] != '-' || arg[1] == '\0') {
			row = find_verb(arg);
			w->cmd->verb = row ? row->verb : VERB_OTHER;
			w->strict = w->cmd->verb != VERB_OTHER && w->cmd->verb != VERB_DELETE;
			w->values = row ? row->values : " ";
			w->i++;
			return 0;
		}
		if (strcmp(arg, "--") == 0)
			continue;
		r = long_option(w, true, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_verb(struct walk *w, struct gs_err *err)
{
	bool options = true;

	for (; w->i < w->argc; w->i++) {
		const char *arg = w->argv[w->i];
		int r;

		if (!options || arg[0] != '-' || arg[1] == '\0') {
			if (!w->cmd->id)
				w->cmd->id = arg;
			/* behind exec's container stands its command, with options of its own */
			if (!w->strict)
				return 0;
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			options = false;
			continue;
		}
		r = arg[1] == '-' ? long_option(w, false, err) : short_option(w, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int argv_read(int argc, char **argv, struct command *ret, struct gs_err *err)
{
	struct walk w = {
		.argc = argc,
		.i = 1,
		.argv = argv,
		.cmd = ret,
		.values = global_values,
	};
	int r;

	*ret = (struct command){ .verb = VERB_OTHER };
	r = walk_global(&w, err);
	if (r == 0)
		r = walk_verb(&w, err);
	return r;
}
