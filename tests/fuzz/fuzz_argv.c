// SPDX-License-Identifier: Apache-2.0
/*
 * The command line. Input: words, one a line. What runc or crun would create a container from must
 * be what we read, or refused: never another bundle, config file or id.
 */
#include <errno.h>

#include "runtime/argv.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/runtimes.h"

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static const char *verb_name(enum verb verb)
{
	switch (verb) {
	case VERB_CREATE:
		return "create";
	case VERB_RUN:
		return "run";
	case VERB_RESTORE:
		return "restore";
	default:
		return NULL;
	}
}

static void compare(const char *who, const struct command *cmd, const struct model *m)
{
	/*
	 * An id that begins with a dash: runc's sorting of words to the front can make an option
	 * that it does not know the id, behind a flag and "--". Nobody names a container so.
	 */
	if (!m->verb || m->id[0] == '-')
		return;
	if (same(verb_name(cmd->verb), m->verb) && same(cmd->bundle, m->bundle) && !m->config &&
	    same(cmd->id, m->id) && same(cmd->pid_file, m->pid_file) && same(cmd->log, m->log))
		return;
	(void)fprintf(stderr, "%s: %s bundle %s config %s id %s pid-file %s log %s\n", who, m->verb,
		      m->bundle, m->config, m->id, m->pid_file, m->log);
	(void)fprintf(stderr, "we: %s bundle %s id %s pid-file %s log %s\n", verb_name(cmd->verb),
		      cmd->bundle, cmd->id, cmd->pid_file, cmd->log);
	abort();
}

/* What was read is a part of the command line. */
static void check_inside(const char *value, int argc, char **argv)
{
	if (!value)
		return;
	for (int i = 1; i < argc; i++)
		if (value >= argv[i] && value <= argv[i] + strlen(argv[i]))
			return;
	CHECK(!"a value from elsewhere");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char self[] = "gpushare-runtime";
	char *words[MODEL_WORDS + 1], *scratch[MODEL_WORDS + 1];
	struct gs_err err = { 0 };
	struct model runc, crun;
	struct command cmd;
	int argc = 0, r;

	words[argc++] = self;
	while (size && argc < MODEL_WORDS) {
		words[argc] = next_part(&data, &size, '\n');
		argc++;
	}
	words[argc] = NULL;
	r = argv_read(argc, words, &cmd, &err);
	if (r < 0) {
		check_error(r, &err);
		CHECK(r == -EINVAL && verb_name(cmd.verb));
	} else {
		/* getopt permutes nothing in this mode, but it may: it gets its own */
		memcpy(scratch, words, sizeof(scratch));
		runc = runc_reads(argc, words);
		compare("runc", &cmd, &runc);
		crun = crun_reads(argc, scratch);
		compare("crun", &cmd, &crun);
		CHECK(!cmd.bundle || cmd.bundle[0]);
	}
	check_inside(cmd.bundle, argc, words);
	check_inside(cmd.id, argc, words);
	check_inside(cmd.log, argc, words);
	check_inside(cmd.log_format, argc, words);
	check_inside(cmd.root, argc, words);
	check_inside(cmd.pid_file, argc, words);
	for (int i = 1; i < argc; i++)
		free(words[i]);
	return 0;
}
