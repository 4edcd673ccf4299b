"""Written by tools/templates.py of report.html.j2: do not edit."""

VERSION = "3.1.6"

from jinja2.runtime import LoopContext, Macro, Markup, Namespace, TemplateNotFound, TemplateReference, TemplateRuntimeError, Undefined, escape, identity, internalcode, markup_join, missing, str_join
name = 'report.html.j2'

def root(context, missing=missing):
    resolve = context.resolve_or_missing
    undefined = environment.undefined
    concat = environment.concat
    cond_expr_undefined = Undefined
    if 0: yield None
    l_0_namespace = resolve('namespace')
    l_0_hashes = resolve('hashes')
    l_0_head = resolve('head')
    l_0_style = resolve('style')
    l_0_run = resolve('run')
    l_0_machine = resolve('machine')
    l_0_created = resolve('created')
    l_0_facts = resolve('facts')
    l_0_numbers = resolve('numbers')
    l_0_sections = resolve('sections')
    l_0_figures = resolve('figures')
    l_0_records = resolve('records')
    l_0_charts = resolve('charts')
    l_0_scripts = resolve('scripts')
    l_0_number = l_0_cell = missing
    try:
        t_1 = environment.filters['base64']
    except KeyError:
        @internalcode
        def t_1(*unused):
            raise TemplateRuntimeError("No filter named 'base64' found.")
    try:
        t_2 = environment.filters['length']
    except KeyError:
        @internalcode
        def t_2(*unused):
            raise TemplateRuntimeError("No filter named 'length' found.")
    try:
        t_3 = environment.tests['defined']
    except KeyError:
        @internalcode
        def t_3(*unused):
            raise TemplateRuntimeError("No test named 'defined' found.")
    try:
        t_4 = environment.tests['none']
    except KeyError:
        @internalcode
        def t_4(*unused):
            raise TemplateRuntimeError("No test named 'none' found.")
    try:
        t_5 = environment.tests['string']
    except KeyError:
        @internalcode
        def t_5(*unused):
            raise TemplateRuntimeError("No test named 'string' found.")
    pass
    l_0_number = context.call((undefined(name='namespace') if l_0_namespace is missing else l_0_namespace), at=0)
    context.vars['number'] = l_0_number
    context.exported_vars.add('number')
    def macro(l_1_value):
        t_6 = []
        if l_1_value is missing:
            l_1_value = undefined("parameter 'value' was not provided", name='value')
        pass
        if t_5(l_1_value):
            pass
            t_6.extend((
                '<bdi>',
                escape(l_1_value),
                '</bdi>',
            ))
        elif t_3(environment.getattr(l_1_value, 'code')):
            pass
            t_6.extend((
                '<code>',
                escape(environment.getattr(l_1_value, 'code')),
                '</code>',
            ))
        elif t_3(environment.getattr(l_1_value, 'place')):
            pass
            t_6.extend((
                '<a href="',
                escape(environment.getattr(l_1_value, 'place')),
                '">',
                escape(environment.getattr(l_1_value, 'word')),
                '</a>',
            ))
        elif t_3(environment.getattr(l_1_value, 'word')):
            pass
            t_6.extend((
                '<span class="badge ',
                escape(environment.getattr(l_1_value, 'kind')),
                '">',
                escape(environment.getattr(l_1_value, 'word')),
                '</span>',
            ))
        else:
            pass
            for l_2_one in l_1_value:
                _loop_vars = {}
                pass
                t_6.extend((
                    escape(context.call((undefined(name='cell') if l_0_cell is missing else l_0_cell), l_2_one, _loop_vars=_loop_vars)),
                    ' ',
                ))
            l_2_one = missing
        return concat(t_6)
    context.exported_vars.add('cell')
    context.vars['cell'] = l_0_cell = Macro(environment, macro, 'cell', ('value',), False, False, False, context.eval_ctx.autoescape)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src'
    for l_1_hash in (undefined(name='hashes') if l_0_hashes is missing else l_0_hashes):
        _loop_vars = {}
        pass
        yield " '"
        yield escape(l_1_hash)
        yield "'"
    l_1_hash = missing
    yield '; style-src \'unsafe-inline\'; img-src data: blob:; media-src data:; base-uri \'none\'; form-action \'none\'">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n<title>'
    yield escape(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'title'))
    yield '</title>\n<style>\n'
    yield escape((undefined(name='style') if l_0_style is missing else l_0_style))
    yield '\n</style>\n</head>\n<body>\n<a class="skip" href="#main">To the content</a>\n<header>\n<h1><bdi>'
    yield escape(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'title'))
    yield '</bdi></h1>\n<p class="question">'
    yield escape(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'question'))
    yield '</p>\n<p class="answer">'
    if environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'gate'):
        pass
        yield '<span class="badge '
        yield escape(environment.getattr(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'gate'), 'kind'))
        yield '">'
        yield escape(environment.getattr(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'gate'), 'word'))
        yield '</span> '
    yield escape(environment.getitem(environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'answers'), 0))
    yield '</p>\n'
    if environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'figures'):
        pass
        yield '<dl class="tiles">\n'
        for l_1_figure in environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'figures'):
            _loop_vars = {}
            pass
            yield '<div'
            if environment.getattr(l_1_figure, 'kind'):
                pass
                yield ' class="'
                yield escape(environment.getattr(l_1_figure, 'kind'))
                yield '"'
            yield '><dt>'
            yield escape(environment.getattr(l_1_figure, 'name'))
            yield '</dt><dd><strong>'
            yield escape(environment.getattr(l_1_figure, 'value'))
            yield '</strong>'
            if environment.getattr(l_1_figure, 'more'):
                pass
                yield ' <span>'
                yield escape(environment.getattr(l_1_figure, 'more'))
                yield '</span>'
            yield '</dd></div>\n'
        l_1_figure = missing
        yield '</dl>\n'
    for l_1_answer in environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'answers')[1:]:
        _loop_vars = {}
        pass
        yield '<p>'
        yield escape(l_1_answer)
        yield '</p>\n'
    l_1_answer = missing
    for l_1_rule in environment.getattr((undefined(name='head') if l_0_head is missing else l_0_head), 'rules'):
        _loop_vars = {}
        pass
        yield '<p>'
        yield escape(l_1_rule)
        yield '</p>\n'
    l_1_rule = missing
    yield '<p class="faint">'
    if (not t_4(environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'samples'))):
        pass
        yield escape(context.call(environment.getattr('{:,}', 'format'), environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'samples')))
        yield ' '
        yield escape(environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'unit'))
        yield escape(('' if (environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'samples') == 1) else 's'))
        if environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'skipped'):
            pass
            yield ', '
            yield escape(context.call(environment.getattr('{:,}', 'format'), environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'skipped')))
            yield ' skipped'
        if environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'scenario'):
            pass
            yield ', '
            yield escape(environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'scenario'))
        yield '; '
    yield '<bdi>'
    yield escape(environment.getattr(environment.getattr((undefined(name='machine') if l_0_machine is missing else l_0_machine), 'cpu'), 'model'))
    yield '</bdi>, '
    yield escape(t_2(environment.getattr((undefined(name='machine') if l_0_machine is missing else l_0_machine), 'usable_cores')))
    yield ' of '
    yield escape(environment.getattr((undefined(name='machine') if l_0_machine is missing else l_0_machine), 'cores'))
    yield ' cores; '
    yield escape((undefined(name='created') if l_0_created is missing else l_0_created))
    yield '.</p>\n'
    if (undefined(name='facts') if l_0_facts is missing else l_0_facts):
        pass
        yield '<ul class="facts">\n'
        for l_1_fact in (undefined(name='facts') if l_0_facts is missing else l_0_facts):
            _loop_vars = {}
            pass
            yield '<li><bdi>'
            yield escape(l_1_fact)
            yield '</bdi></li>\n'
        l_1_fact = missing
        yield '</ul>\n'
    yield '<noscript><p>The figures need JavaScript; their numbers are in '
    yield escape((undefined(name='numbers') if l_0_numbers is missing else l_0_numbers))
    yield '.</p></noscript>\n<nav aria-label="Contents"><ul class="places">\n'
    for l_1_section in (undefined(name='sections') if l_0_sections is missing else l_0_sections):
        _loop_vars = {}
        pass
        yield '<li><a href="#'
        yield escape(environment.getattr(l_1_section, 'key'))
        yield '">'
        yield escape(environment.getitem(context.call(environment.getattr(environment.getattr(l_1_section, 'title'), 'partition'), ':', _loop_vars=_loop_vars), 0))
        yield '</a></li>\n'
    l_1_section = missing
    if ((environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'warnings') or environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'skipped')) or environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'failures')):
        pass
        yield '<li><a href="#notes">Notes of the run</a></li>\n'
    yield '</ul></nav>\n</header>\n<main id="main">\n'
    l_1_loop = missing
    for l_1_section, l_1_loop in LoopContext((undefined(name='sections') if l_0_sections is missing else l_0_sections), undefined):
        _loop_vars = {}
        pass
        yield '<section id="'
        yield escape(environment.getattr(l_1_section, 'key'))
        yield '" aria-labelledby="'
        yield escape(environment.getattr(l_1_section, 'key'))
        yield '-title">\n<h2 id="'
        yield escape(environment.getattr(l_1_section, 'key'))
        yield '-title">'
        yield escape(environment.getattr(l_1_section, 'title'))
        yield '</h2>\n<p class="question">'
        yield escape(environment.getattr(l_1_section, 'question'))
        yield '</p>\n'
        for l_2_sentence in environment.getattr(l_1_section, 'found'):
            _loop_vars = {}
            pass
            yield '<p>'
            yield escape(l_2_sentence)
            yield '</p>\n'
        l_2_sentence = missing
        l_2_loop = missing
        for l_2_table, l_2_loop in LoopContext(environment.getattr(l_1_section, 'tables'), undefined):
            _loop_vars = {}
            pass
            if environment.getattr(l_2_table, 'folded'):
                pass
                yield '<details><summary>'
                yield escape(environment.getattr(l_2_table, 'caption'))
                yield '</summary>\n'
            yield '<div class="scroll" tabindex="0" role="region" aria-label="'
            yield escape(environment.getattr(l_2_table, 'caption'))
            yield '">\n<table'
            if environment.getattr(l_2_table, 'narrow'):
                pass
                yield ' class="'
                yield escape(environment.getattr(l_2_table, 'narrow'))
                yield '"'
            yield '>\n'
            if (not environment.getattr(l_2_table, 'folded')):
                pass
                yield '<caption><span>'
                yield escape(environment.getattr(l_2_table, 'caption'))
                yield '</span></caption>\n'
            yield '<thead><tr>'
            l_3_loop = missing
            for l_3_name, l_3_loop in LoopContext(environment.getattr(l_2_table, 'head'), undefined):
                _loop_vars = {}
                pass
                yield '<th scope="col"'
                if (environment.getattr(l_3_loop, 'index0') >= environment.getattr(l_2_table, 'numbers')):
                    pass
                    yield ' class="number"'
                yield '><bdi>'
                yield escape(l_3_name)
                yield '</bdi></th>'
            l_3_loop = l_3_name = missing
            yield '</tr></thead>\n<tbody>\n'
            l_3_loop = missing
            for l_3_row, l_3_loop in LoopContext(environment.getattr(l_2_table, 'rows'), undefined):
                l_3_marked = missing
                _loop_vars = {}
                pass
                l_3_marked = (environment.getattr(l_3_loop, 'index0') in environment.getattr(l_2_table, 'marked'))
                _loop_vars['marked'] = l_3_marked
                yield '<tr'
                if (undefined(name='marked') if l_3_marked is missing else l_3_marked):
                    pass
                    yield ' class="marked"'
                yield '>'
                l_4_loop = missing
                for l_4_value, l_4_loop in LoopContext(l_3_row, undefined):
                    _loop_vars = {}
                    pass
                    if environment.getattr(l_4_loop, 'first'):
                        pass
                        yield '<th scope="row">'
                        yield escape(context.call((undefined(name='cell') if l_0_cell is missing else l_0_cell), l_4_value, _loop_vars=_loop_vars))
                        yield '</th>'
                    else:
                        pass
                        yield '<td'
                        if (environment.getattr(l_4_loop, 'index0') >= environment.getattr(l_2_table, 'numbers')):
                            pass
                            yield ' class="number"'
                        if (environment.getattr(l_2_table, 'narrow') and (l_4_value != '')):
                            pass
                            yield ' data-name="'
                            yield escape(environment.getitem(environment.getattr(l_2_table, 'head'), environment.getattr(l_4_loop, 'index0')))
                            yield '"'
                        yield '>'
                        yield escape(context.call((undefined(name='cell') if l_0_cell is missing else l_0_cell), l_4_value, _loop_vars=_loop_vars))
                        yield '</td>'
                l_4_loop = l_4_value = missing
                yield '</tr>\n'
            l_3_loop = l_3_row = l_3_marked = missing
            yield '</tbody>\n</table>\n</div>\n'
            if environment.getattr(l_2_table, 'folded'):
                pass
                yield '</details>\n'
        l_2_loop = l_2_table = missing
        if environment.getattr(l_1_section, 'panels'):
            pass
            yield '<div class="panels'
            if (t_2(environment.getattr(l_1_section, 'panels')) == 1):
                pass
                yield ' one'
            yield '">\n'
            for l_2_panel in environment.getattr(l_1_section, 'panels'):
                _loop_vars = {}
                pass
                yield '<div class="panel">\n'
                if environment.getattr(l_2_panel, 'caption'):
                    pass
                    yield '<h3><bdi>'
                    yield escape(environment.getattr(l_2_panel, 'caption'))
                    yield '</bdi></h3>\n'
                yield '<div data-figure="'
                yield escape(environment.getattr((undefined(name='number') if l_0_number is missing else l_0_number), 'at'))
                yield '" role="group" aria-label="'
                yield escape(environment.getattr(l_1_section, 'title'))
                if environment.getattr(l_2_panel, 'caption'):
                    pass
                    yield ', '
                    yield escape(environment.getattr(l_2_panel, 'caption'))
                yield '" style="height: '
                yield escape(environment.getattr(environment.getattr(environment.getattr(l_2_panel, 'figure'), 'layout'), 'height'))
                yield 'px"></div>\n'
                if not isinstance(l_0_number, Namespace):
                    raise TemplateRuntimeError("cannot assign attribute on non-namespace object")
                l_0_number['at'] = (environment.getattr((undefined(name='number') if l_0_number is missing else l_0_number), 'at') + 1)
                yield '</div>\n'
            l_2_panel = missing
            yield '</div>\n'
        if environment.getattr(l_1_section, 'pictures'):
            pass
            yield '<div class="pictures">\n'
            for l_2_picture in environment.getattr(l_1_section, 'pictures'):
                _loop_vars = {}
                pass
                yield '<figure>\n<img src="data:'
                yield escape(environment.getattr(l_2_picture, 'kind'))
                yield ';base64,'
                yield escape(t_1(environment.getattr(l_2_picture, 'data')))
                yield '" alt="'
                yield escape(environment.getattr(l_2_picture, 'words'))
                yield '">\n<figcaption><bdi>'
                yield escape(environment.getattr(l_2_picture, 'words'))
                yield '</bdi></figcaption>\n</figure>\n'
            l_2_picture = missing
            yield '</div>\n'
        if environment.getattr(l_1_section, 'html'):
            pass
            yield escape(environment.getattr(l_1_section, 'html'))
            yield '\n'
        if (environment.getattr(l_1_section, 'empty') and (not environment.getattr(l_1_section, 'found'))):
            pass
            yield '<p>There is nothing to draw.</p>\n'
        if environment.getattr(l_1_section, 'notes'):
            pass
            yield '<ul class="notes">\n'
            for l_2_line in environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'failures'):
                _loop_vars = {}
                pass
                yield '<li>fails: <bdi>'
                yield escape(l_2_line)
                yield '</bdi></li>\n'
            l_2_line = missing
            for l_2_note in environment.getattr(l_1_section, 'notes'):
                _loop_vars = {}
                pass
                yield '<li>'
                yield escape(l_2_note)
                yield '</li>\n'
            l_2_note = missing
            yield '</ul>\n'
        if environment.getattr(l_1_section, 'numbered'):
            pass
            yield '<details><summary>What has which number</summary>\n<ol>\n'
            for l_2_name in environment.getattr(l_1_section, 'numbered'):
                _loop_vars = {}
                pass
                yield '<li><bdi>'
                yield escape(l_2_name)
                yield '</bdi></li>\n'
            l_2_name = missing
            yield '</ol>\n</details>\n'
        if ((environment.getattr(l_1_section, 'key') == 'provenance') and (undefined(name='records') if l_0_records is missing else l_0_records)):
            pass
            yield '<p><button type="button" id="records">Download the records as CSV</button></p>\n'
        yield '</section>\n'
    l_1_loop = l_1_section = missing
    if ((environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'warnings') or environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'skipped')) or environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'failures')):
        pass
        yield '<section id="notes" aria-labelledby="notes-title">\n<h2 id="notes-title">Notes of the run</h2>\n<ul class="notes">\n'
        for l_1_line in environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'failures'):
            _loop_vars = {}
            pass
            yield '<li>fails: <bdi>'
            yield escape(l_1_line)
            yield '</bdi></li>\n'
        l_1_line = missing
        for l_1_warning in environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'warnings'):
            _loop_vars = {}
            pass
            yield '<li>'
            yield escape(l_1_warning)
            yield '</li>\n'
        l_1_warning = missing
        for l_1_skip in environment.getattr((undefined(name='run') if l_0_run is missing else l_0_run), 'skipped_samples'):
            _loop_vars = {}
            pass
            yield '<li>skipped: <bdi>'
            yield escape(environment.getattr(l_1_skip, 'sample'))
            yield '</bdi>: '
            yield escape(environment.getattr(l_1_skip, 'why'))
            yield '</li>\n'
        l_1_skip = missing
        yield '</ul>\n</section>\n'
    yield '</main>\n<script type="application/json" id="figures">'
    yield escape((undefined(name='figures') if l_0_figures is missing else l_0_figures))
    yield '</script>\n'
    if (undefined(name='records') if l_0_records is missing else l_0_records):
        pass
        yield '<script type="application/octet-stream" id="packed">'
        yield escape((undefined(name='records') if l_0_records is missing else l_0_records))
        yield '</script>\n'
    if (undefined(name='charts') if l_0_charts is missing else l_0_charts):
        pass
        yield '<script type="application/octet-stream" id="charts">'
        yield escape((undefined(name='charts') if l_0_charts is missing else l_0_charts))
        yield '</script>\n'
    for l_1_script in (undefined(name='scripts') if l_0_scripts is missing else l_0_scripts):
        _loop_vars = {}
        pass
        yield '<script>'
        yield escape(l_1_script)
        yield '</script>\n'
    l_1_script = missing
    yield '</body>\n</html>'

blocks = {}
debug_info = '1=56&2=59&3=64&9=110&12=118&14=120&20=122&21=124&22=126&23=135&25=138&26=142&30=160&31=164&33=167&34=171&36=175&37=200&39=203&40=207&44=212&46=214&47=218&49=223&55=228&56=232&57=236&58=240&59=242&60=246&62=250&63=253&64=256&66=259&67=261&68=267&69=270&71=274&73=287&74=291&75=294&80=325&84=329&85=332&86=336&88=340&89=343&91=346&92=358&97=362&99=365&101=369&102=375&107=379&108=381&110=383&113=386&115=389&116=393&118=396&119=400&123=404&126=407&127=411&132=415&137=420&141=423&142=427&144=430&145=434&147=437&148=441&154=448&155=450&156=453&158=455&159=458&161=460&162=464'
