# SPDX-License-Identifier: MIT
"""Reads the trial log of a sweep's work directory (harness/sweep/log_rows.h)."""
import json


def trials_of(log):
    """The finished trials of a log, a last line that was cut off left out: index, faults as texts, what the trial amounts to, findings."""
    tables = {}
    trials = []
    for line in log.read_text().splitlines() if log.is_file() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            break
        for table, content in row.get("new", []):
            tables.setdefault(table, []).append(content)
        numbers = iter(row["faults"])
        trial = dict(tables["r"][row["as"]], trial=row["trial"])
        trial["faults"] = [tables["s"][text].replace("*", str(next(numbers))) for text in numbers]
        trial["findings"] = [tables["n"][number] for number in row.get("findings", [])]
        trials.append(trial)
    return trials
