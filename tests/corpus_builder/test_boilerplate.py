from __future__ import annotations

import pytest
from lxml import html

from corpus_builder.boilerplate import is_cluttered, remove_hidden, remove_surroundings


def tree(body: str) -> html.HtmlElement:
    return html.document_fromstring(
        f"<html><head><title>T</title></head><body>{body}</body></html>"
    )


def words(root: html.HtmlElement) -> str:
    pieces = [piece for piece in root.itertext() if isinstance(piece, str)]
    return " ".join(" ".join(pieces).split()).removeprefix("T").strip()


CONTENT = f"<p>{'Content that is shown. ' * 20}</p>"


def hidden(body: str) -> str:
    root = tree(body + CONTENT)
    remove_hidden(root)
    return (
        words(root)
        .replace("Content that is shown. ", "")
        .removesuffix("Content that is shown.")
        .strip()
    )


@pytest.mark.parametrize(
    "element",
    [
        "<script>secret</script>",
        "<style>secret</style>",
        "<template><p>secret</p></template>",
        "<noscript>secret</noscript>",
        "<p hidden>secret</p>",
        '<p hidden="hidden">secret</p>',
        '<div style="display:none">secret</div>',
        '<div style="color:red; DISPLAY : none !important">secret</div>',
        '<span style="visibility: hidden">secret</span>',
        '<span style="font-size:0">secret</span>',
        '<span style="opacity:0;">secret</span>',
        "<button>secret</button>",
        "<select><option>secret</select>",
        "<textarea>secret</textarea>",
        "<svg><text>secret</text></svg>",
        "<iframe>secret</iframe>",
        "<!-- secret -->",
        '<div hidden><p>secret</p><div style="display:none">secret</div></div>',
    ],
)
def test_hidden_elements_go(element: str) -> None:
    assert "secret" not in hidden(f"<p>before</p>{element}<p>after</p>")
    assert hidden(f"<p>before</p>{element}<p>after</p>").split() == ["before", "after"]


@pytest.mark.parametrize(
    "element",
    [
        '<div style="display:block">shown</div>',
        '<div style="font-size:0.9em">shown</div>',
        '<div style="opacity:0.5">shown</div>',
        '<div aria-hidden="true">shown</div>',
        '<form><p>shown</p><input value="x"></form>',
        "<details><summary>shown</summary></details>",
    ],
)
def test_shown_elements_stay(element: str) -> None:
    assert hidden(element) == "shown"


def test_text_after_a_hidden_element_stays() -> None:
    assert (
        hidden("<p>one<script>secret</script>two<b hidden>secret</b>three</p>") == "one two three"
    )


def test_an_element_that_holds_most_of_the_page_stays() -> None:
    root = tree(f"<p>head</p><noscript>{CONTENT}</noscript>")
    remove_hidden(root)
    assert "Content that is shown." in words(root)


def test_a_script_goes_even_if_it_holds_most_of_the_page() -> None:
    root = tree(f"<p>head</p><script>{CONTENT}</script>")
    remove_hidden(root)
    assert words(root) == "head"


def test_a_hidden_body_is_shown_by_a_script() -> None:
    root = html.document_fromstring(
        '<html hidden><body style="opacity:0"><p>text</p></body></html>'
    )
    remove_hidden(root)
    assert words(root) == "text"


def kept(body: str) -> str:
    root = tree(body + CONTENT)
    remove_surroundings(root)
    return (
        words(root)
        .replace("Content that is shown. ", "")
        .removesuffix("Content that is shown.")
        .strip()
    )


@pytest.mark.parametrize(
    "element",
    [
        "<nav>menu</nav>",
        "<aside>menu</aside>",
        "<footer>menu</footer>",
        "<header>menu</header>",
        '<div role="navigation">menu</div>',
        '<div role="contentinfo">menu</div>',
        '<div class="sphinxsidebar">menu</div>',
        '<div class="navheader">menu</div>',
        '<ul id="breadcrumbs">menu</ul>',
        '<div class="main-menu big">menu</div>',
        '<a class="headerlink" href="#x">menu</a>',
        '<div id="footer">menu</div>',
        '<div class="cookie-banner">menu</div>',
    ],
)
def test_surroundings_go(element: str) -> None:
    assert kept(f"<p>before</p>{element}<p>after</p>") == "before after"


@pytest.mark.parametrize(
    "element",
    [
        "<header><h1>Title</h1></header>",
        "<article><header>Title</header></article>",
        "<article><footer>Title</footer></article>",
        "<main><header>Title</header></main>",
        '<div class="menu"><h1>Title</h1></div>',
        '<div class="navigation"><main>Title</main></div>',
        '<div class="relatedness">Title</div>',
        '<body class="sidebar">Title</body>',
        '<div class="content">Title</div>',
    ],
)
def test_content_in_such_places_stays(element: str) -> None:
    assert kept(element) == "Title"


def test_a_page_that_would_be_left_empty_stays_whole() -> None:
    root = tree(f'<div id="menu">{CONTENT}</div>')
    remove_surroundings(root)
    assert "Content that is shown." in words(root)


@pytest.mark.parametrize(
    "element",
    [
        '<div class="social">',
        '<ul class="share-buttons">',
        '<div id="comments">',
        '<li class="comment even">',
        '<ol class="commentlist">',
        '<div class="ad">',
        '<ins class="ads google">',
        '<section class="newsletter-signup">',
        '<div class="related-posts">',
        '<div id="taboola">',
        '<p class="postmeta">',
    ],
)
def test_cluttered_pages(element: str) -> None:
    assert is_cluttered(tree(f"{element}x"))


@pytest.mark.parametrize(
    "element",
    [
        '<div class="document">',
        '<section id="sharing-of-files-between-users">',
        '<section id="package-recommends-field">',
        '<span class="comment">',
        '<div class="header">',
        '<div class="address">',
        '<div class="download">',
    ],
)
def test_plain_pages(element: str) -> None:
    assert not is_cluttered(tree(f"{element}x"))
