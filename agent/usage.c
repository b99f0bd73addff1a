// SPDX-License-Identifier: Apache-2.0
/* Whose memory it is that a card's processes use. */
#include "agent/strangers.h"
#include "agent/usage.h"

bool usage_add(const struct agent *agent, const struct load *load, uint64_t *sums)
{
	bool told = load->n_processes == 0;

	for (size_t i = 0; load->processes_known && i < load->n_processes; i++) {
		const struct container *c;

		/* whose it is costs a look into /proc, and there may be thousands */
		if (!load->processes[i].memory)
			continue;
		told = true;
		c = container_of_process(agent, load->processes[i].pid);
		if (c)
			sums[c - agent->containers.v] += load->processes[i].memory;
	}
	return load->processes_known && told;
}
