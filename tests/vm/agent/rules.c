// SPDX-License-Identifier: Apache-2.0
/*
 * Does every rule of the agent's filter have its use? Reads what programs/agentcalls.c printed, of
 * as many machines as there were, among whatever else stands there; prints TAP.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rules themselves, which have no other name. */
#include "agent/sandbox_rules.c" // NOLINT(bugprone-suspicious-include)

struct met {
	int call;
	uint64_t argument;
};

static struct met met[4096];
static size_t n_met;
static uint64_t refused, machines; /* by the filter; that told so */
static int tests, failures;

static void read_all(FILE *in)
{
	char line[4096];

	while (fgets(line, sizeof(line), in)) {
		/* a stream of TAP has them behind a # of its own, or not */
		const char *at = strstr(line, "## ");
		struct met one;
		uint64_t n;

		if (at && sscanf(at, "## refused %" SCNu64, &n) == 1) {
			refused += n;
			machines++;
		}
		if (at && n_met < GS_ARRAY_SIZE(met) &&
		    sscanf(at, "## call %d %" SCNu64, &one.call, &one.argument) == 2)
			met[n_met++] = one;
	}
}

/* Was it called, and with what is @value under @mask as its argument? */
static bool is_met(const char *name, uint64_t mask, uint64_t value)
{
	int call = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; i < n_met; i++)
		if (met[i].call == call && (met[i].argument & mask) == value)
			return true;
	return false;
}

static void result(bool is_good, const char *name, const char *how)
{
	failures += !is_good;
	printf("%sok %d - %s%s\n", is_good ? "" : "not ", ++tests, name, how);
}

static void rule_is(const char *name, const char *how, bool is_rare, bool has)
{
	char text[64];

	if (is_rare) {
		if (has)
			printf("# %s%s is met, and counts as rare\n", name, how);
		return;
	}
	(void)snprintf(text, sizeof(text), "some suite needs %s", name);
	result(has, text, how);
}

int main(void)
{
	char how[64];

	read_all(stdin);
	result(machines > 0, "some machine counted", "");
	result(refused == 0, "none of its calls was refused", "");
	for (size_t i = 0; i < GS_ARRAY_SIZE(allowed); i++)
		rule_is(allowed[i], "", false, is_met(allowed[i], 0, 0));
	for (size_t i = 0; i < GS_ARRAY_SIZE(rare); i++)
		rule_is(rare[i], "", true, is_met(rare[i], 0, 0));
	for (size_t i = 0; i < GS_ARRAY_SIZE(choices); i++) {
		const struct choice *c = &choices[i];

		/* an int, whatever stands in the upper half of its register */
		(void)snprintf(how, sizeof(how), " with %#" PRIx64, c->value);
		rule_is(c->call, how, c->rare, is_met(c->call, UINT32_MAX, c->value));
	}
	rule_is("mmap", "", false, is_met("mmap", PROT_EXEC, 0));
	rule_is("mmap", " of a library", true, is_met("mmap", PROT_EXEC, PROT_EXEC));
	rule_is("mprotect", "", false, is_met("mprotect", PROT_EXEC, 0));
	rule_is("clone", " of a thread", false, is_met("clone", CLONE_THREAD, CLONE_THREAD));
	printf("1..%d\n", tests);
	return failures != 0;
}
