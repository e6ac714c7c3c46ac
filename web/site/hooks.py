"""What the pages are on their way into the site: answers of the gallery are live, links out of docs/ are words."""
import html
import pathlib
import re
import shlex


def attributes_of(command):
    """The flags of `tidemark estimate` as the widget's attributes, which have the same names; None where it has no such way."""
    words = shlex.split(command)[2:]
    found = {}
    while words:
        flag = words.pop(0)
        if not flag.startswith("--") or flag in ("--json", "--config", "--from"):
            return None
        has_value = words and not words[0].startswith("--")
        found[flag[2:]] = words.pop(0) if has_value else ""
    return found


def live(match):
    """A calculator under the answer, with the same question."""
    found = attributes_of(match["command"])
    if not found:
        return match[0]
    attributes = " ".join(f'{name}="{html.escape(value)}"' for name, value in found.items())
    words = html.escape(re.sub(r"[*`]", "", match["answer"]).strip())
    return f'{match[0]}\n\n<tidemark-calculator {attributes} page="../../index.html">{words}</tidemark-calculator>\n'


def on_page_markdown(markdown, page, **_):
    # Files of the sources are not part of the site.
    markdown = re.sub(r"\[([^\]]*)\]\((?:\.\./(?!index\.html)|request\.schema\.json|gallery/|refresh\.py)[^)]*\)", r"`\1`", markdown)
    if page.file.src_uri == "gallery.md":
        pattern = r"<!-- answer: (?P<command>tidemark estimate [^\n]*?) -->\n```sh\n.*?\n```\n\n(?P<answer>.*?)\n<!-- end -->"
        markdown = re.sub(pattern, live, markdown, flags=re.S)
    return markdown


def on_post_page(output, page, **_):
    # The element's script, at the site's top, where the page's own snippets expect it.
    up = "../" * (len(pathlib.PurePosixPath(page.url).parts) + 1)
    script = f'<script type="module" src="{up}widget/tidemark-calculator.js"></script>'
    return output.replace("</head>", f"{script}</head>", 1)
