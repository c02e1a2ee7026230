#!/usr/bin/env python3
"""Plants questions of a made-up benchmark in made-up documents, and counts which of them `nigh run --against` finds.

    scripts/leaks.py target/release/nigh [DOCUMENTS] [QUESTIONS]

Each question has 12 to 40 words, and a fifth of them begin with the same twelve words. Of the documents a tenth have a question: alone, in a
page of a thousand words, in capitals and with other punctuation, with one word in 20, 10 or 5 replaced, or its first half only. Others have only
the beginning that many questions share, or the words of a question in another order. All of it is the same each time.

Printed for each length of n-grams and each least share: of the planted questions of each kind, those that are found (recall), and of what is
found, what was planted (precision). The share of each pair that was found is
compared with one that this script computes by sets; it ends with 1 if one differs.
"""

import json, os, pathlib, random, re, subprocess, sys, tempfile

KINDS = ["alone", "in a page", "other letters", "1 in 20 replaced", "1 in 10 replaced", "1 in 5 replaced", "first half"]
HEAD = "which of the following statements about the text above is true because".split()
CHOICES = [(8, 0.7), (8, 0.5), (10, 0.7), (13, 0.7), (13, 0.3)]


def words(source, count):
    """Words as frequent as those of a language: the n-th one as often as 1/n."""
    return [f"w{int(source.paretovariate(0.9))}" for _ in range(count)]


def replaced(source, question, every):
    return [f"other{source.randrange(10**6)}" if source.randrange(every) == 0 else word for word in question]


def make(folder, documents, count):
    source = random.Random(13)
    questions = []
    for number in range(count):
        head = HEAD if number % 5 == 0 else []
        questions.append(head + words(source, source.randrange(12, 41) - len(head) // 2))
    planted = {}
    with open(folder / "corpus.jsonl", "w") as file:
        for number in range(documents):
            text = words(source, source.randrange(50, 600))
            if number % 10 == 0:
                kind, item = KINDS[number // 10 % len(KINDS)], source.randrange(count)
                question = questions[item]
                if "replaced" in kind:
                    question = replaced(source, question, int(kind.split()[2]))
                elif kind == "first half":
                    question = question[: len(question) // 2]
                around = {"alone": 0, "in a page": 1000}.get(kind, 200)
                before = source.randrange(around + 1)
                text = words(source, before) + question + words(source, around - before)
                if kind == "other letters":
                    text = ", ".join(text).upper().split(" ")
                planted[number, item] = kind
            elif number % 10 == 1:
                text = text + HEAD + text[:20]
            elif number % 10 == 2:
                text = text + source.sample(questions[number % count], len(questions[number % count]))
            file.write(json.dumps({"id": number, "text": " ".join(text)}) + "\n")
    with open(folder / "evals.jsonl", "w") as file:
        for number, question in enumerate(questions):
            file.write(json.dumps({"id": f"q{number}", "question": " ".join(question), "answer": number % 4}) + "\n")
    return questions, planted


def grams(text, width):
    found = re.findall(r"\w+", text.lower())
    return {tuple(found[at : at + width]) for at in range(len(found) - width + 1)}


def main():
    program = os.path.abspath(sys.argv[1])
    documents, count = (int(number) for number in (sys.argv[2:] + ["20000", "1000"])[:2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        questions, planted = make(folder, documents, count)
        run = lambda *arguments: subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
        run("run", "--week", "2024-01-08", "--store", "corpus", "--input", "corpus.jsonl", "--id", "id", "--no-accuracy", "-q")
        texts = [json.loads(line)["text"] for line in open(folder / "corpus.jsonl")]
        numbers = {}
        for line in run("table", "corpus", "documents", "--columns", "doc,id", "--format", "jsonl").splitlines():
            row = json.loads(line)
            numbers[row["doc"]] = int(row["id"])
        size = (folder / "corpus.jsonl").stat().st_size / 1e6
        print(f"{documents:,} documents ({size:.0f} MB), {count:,} questions, {len(planted):,} planted\n")
        print("| n-grams | least share | " + " | ".join(KINDS) + " | precision | CPU s |")
        print("|---" * (len(KINDS) + 4) + "|")
        for width, share in CHOICES:
            (folder / "job.toml").write_text(
                f'[decontamination]\nid = "id"\ncolumns = ["question"]\nwords = {width}\ncontainment = {share}\n'
            )
            before = os.times()
            run("run", "job.toml", "--store", "corpus", "--against", "evals.jsonl", "-q")
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            found = {}
            for line in run("table", "corpus", "decontamination/matches", "--columns", "doc,item,containment", "--format", "jsonl").splitlines():
                row = json.loads(line)
                found[numbers[row["doc"]], row["item"]] = row["containment"]
            for (document, item), containment in found.items():
                all_of_item = grams(" ".join(questions[item]), width)
                if abs(len(all_of_item & grams(texts[document], width)) / len(all_of_item) - containment) > 1e-12:
                    sys.exit(f"document {document}, question {item}: {containment} is not their containment")
            for (document, item), kind in planted.items():
                all_of_item = grams(" ".join(questions[item]), width)
                is_enough = all_of_item and len(all_of_item & grams(texts[document], width)) / len(all_of_item) >= share
                if bool(is_enough) != ((document, item) in found):
                    sys.exit(f"document {document}, question {item}: found or not found wrongly")
            recall = []
            for kind in KINDS:
                of_kind = [pair for pair, other in planted.items() if other == kind]
                recall.append(f"{sum(pair in found for pair in of_kind) / len(of_kind):.3f}")
            right = sum(pair in planted for pair in found)
            print(f"| {width} | {share} | " + " | ".join(recall) + f" | {right / max(len(found), 1):.3f} | {cpu:.1f} |", flush=True)


main()
