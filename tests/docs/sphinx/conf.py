project = "Tidemark in Sphinx"
html_theme = "furo"
html_static_path = ["_static"]
html_js_files = [("widget/tidemark-calculator.js", {"type": "module"})]
