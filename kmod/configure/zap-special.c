// SPDX-License-Identifier: GPL-2.0-only
/* zap_vma_ptes() has another name (7.x). */
#include <linux/mm.h>

void use(struct vm_area_struct *vma)
{
	zap_special_vma_range(vma, vma->vm_start, 0);
}
