// SPDX-License-Identifier: MIT
// settings_undefine.h: takes back the macros of settings.def after each reading of it. No include guard: it is read several times.
#undef CUAUDIT_ALLOC_MIB
#undef CUAUDIT_ALLOC_COUNT
#undef CUAUDIT_ALLOC_FRACTION
#undef CUAUDIT_ALLOC_SWITCH
#undef CUAUDIT_ALLOC_CHOICE
#undef CUAUDIT_ALLOC_DIVISIONS
#undef CUAUDIT_ALLOC_REFUSED
