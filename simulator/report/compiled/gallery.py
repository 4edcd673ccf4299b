"""Written by tools/templates.py of gallery.html.j2: do not edit."""

VERSION = "3.1.6"

from jinja2.runtime import LoopContext, Macro, Markup, Namespace, TemplateNotFound, TemplateReference, TemplateRuntimeError, Undefined, escape, identity, internalcode, markup_join, missing, str_join
name = 'gallery.html.j2'

def root(context, missing=missing):
    resolve = context.resolve_or_missing
    undefined = environment.undefined
    concat = environment.concat
    cond_expr_undefined = Undefined
    if 0: yield None
    l_0_views = resolve('views')
    l_0_image = l_0_figure = missing
    pass
    def macro(l_1_shown, l_1_words):
        t_1 = []
        if l_1_shown is missing:
            l_1_shown = undefined("parameter 'shown' was not provided", name='shown')
        if l_1_words is missing:
            l_1_words = undefined("parameter 'words' was not provided", name='words')
        pass
        t_1.extend((
            '<img src="',
            escape(environment.getattr(l_1_shown, 'source')),
            '" alt="',
            escape(l_1_words),
            '" width="',
            escape((environment.getattr(l_1_shown, 'width') * environment.getattr(l_1_shown, 'factor'))),
            '" height="',
            escape((environment.getattr(l_1_shown, 'height') * environment.getattr(l_1_shown, 'factor'))),
            '">\n',
        ))
        return concat(t_1)
    context.exported_vars.add('image')
    context.vars['image'] = l_0_image = Macro(environment, macro, 'image', ('shown', 'words'), False, False, False, context.eval_ctx.autoescape)
    def macro(l_1_shown, l_1_words):
        t_2 = []
        if l_1_shown is missing:
            l_1_shown = undefined("parameter 'shown' was not provided", name='shown')
        if l_1_words is missing:
            l_1_words = undefined("parameter 'words' was not provided", name='words')
        pass
        t_2.extend((
            '<figure>\n',
            escape(context.call((undefined(name='image') if l_0_image is missing else l_0_image), l_1_shown, l_1_words)),
            '\n<figcaption>',
            escape(l_1_words),
            '</figcaption>\n</figure>\n',
        ))
        return concat(t_2)
    context.exported_vars.add('figure')
    context.vars['figure'] = l_0_figure = Macro(environment, macro, 'figure', ('shown', 'words'), False, False, False, context.eval_ctx.autoescape)
    l_1_loop = missing
    for l_1_view, l_1_loop in LoopContext((undefined(name='views') if l_0_views is missing else l_0_views), undefined):
        l_1_first = resolve('first')
        l_1_steps = resolve('steps')
        l_1_name = missing
        _loop_vars = {}
        pass
        l_1_name = markup_join(('look-', (environment.getattr(l_1_loop, 'index0') + (undefined(name='first') if l_1_first is missing else l_1_first)), ))
        _loop_vars['name'] = l_1_name
        yield '<article class="look" aria-labelledby="'
        yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
        yield '">\n<h3 id="'
        yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
        yield '"><bdi>'
        yield escape(environment.getattr(l_1_view, 'name'))
        yield '</bdi> <span class="faint">'
        yield escape(environment.getattr(l_1_view, 'why'))
        yield '</span></h3>\n<div class="look-body">\n<div class="look-head">\n'
        if environment.getattr(l_1_view, 'picture'):
            pass
            yield '<figure class="look-picture">\n'
            yield escape(context.call((undefined(name='image') if l_0_image is missing else l_0_image), environment.getattr(l_1_view, 'picture'), environment.getattr(l_1_view, 'caption'), _loop_vars=_loop_vars))
            yield '\n<figcaption>'
            yield escape(environment.getattr(l_1_view, 'caption'))
            yield '</figcaption>\n</figure>\n'
        if environment.getattr(l_1_view, 'choices'):
            pass
            yield '<div class="look-choice" data-look hidden>\n<fieldset>\n<legend>Difference from train</legend>\n'
            l_2_loop = missing
            for l_2_choice, l_2_loop in LoopContext(environment.getattr(l_1_view, 'choices'), undefined):
                _loop_vars = {}
                pass
                yield '<label><input type="radio" name="'
                yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
                yield '-choice" value="'
                yield escape(context.call(environment.getattr(environment.getattr(l_1_view, 'sources'), 'index'), environment.getattr(environment.getattr(l_2_choice, 'shown'), 'source'), _loop_vars=_loop_vars))
                yield '" data-label="'
                yield escape(environment.getattr(l_2_choice, 'label'))
                yield '"'
                if environment.getattr(l_2_loop, 'first'):
                    pass
                    yield ' checked'
                yield '> <span>'
                yield escape(environment.getattr(l_2_choice, 'words'))
                yield '</span></label>\n'
            l_2_loop = l_2_choice = missing
            yield '</fieldset>\n<p class="look-slider">\n<label for="'
            yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
            yield '-times">Amplified</label>\n<input type="range" id="'
            yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
            yield '-times" min="0" max="'
            yield escape((undefined(name='steps') if l_1_steps is missing else l_1_steps))
            yield '" step="1" value="'
            yield escape(environment.getattr(l_1_view, 'start'))
            yield '" aria-valuetext="'
            yield escape((2 ** environment.getattr(l_1_view, 'start')))
            yield ' times">\n<output for="'
            yield escape((undefined(name='name') if l_1_name is missing else l_1_name))
            yield '-times">'
            yield escape((2 ** environment.getattr(l_1_view, 'start')))
            yield '×</output>\n</p>\n<p><button type="button" aria-pressed="false">Show it in train’s place</button></p>\n</div>\n<noscript><ul class="notes">\n'
            for l_2_choice in environment.getattr(l_1_view, 'choices'):
                _loop_vars = {}
                pass
                yield '<li>'
                yield escape(environment.getattr(l_2_choice, 'words'))
                yield '</li>\n'
            l_2_choice = missing
            yield '</ul></noscript>\n'
        yield '</div>\n'
        if environment.getattr(l_1_view, 'choices'):
            pass
            yield '<div class="look-row" data-tensors>\n'
            yield escape(context.call((undefined(name='figure') if l_0_figure is missing else l_0_figure), environment.getattr(l_1_view, 'train'), 'train', _loop_vars=_loop_vars))
            yield '\n'
            yield escape(context.call((undefined(name='figure') if l_0_figure is missing else l_0_figure), environment.getattr(environment.getitem(environment.getattr(l_1_view, 'choices'), 0), 'shown'), environment.getattr(environment.getitem(environment.getattr(l_1_view, 'choices'), 0), 'label'), _loop_vars=_loop_vars))
            yield '\n<figure hidden>\n<canvas role="img" width="'
            yield escape(environment.getattr(environment.getattr(l_1_view, 'train'), 'width'))
            yield '" height="'
            yield escape(environment.getattr(environment.getattr(l_1_view, 'train'), 'height'))
            yield '" style="width: '
            yield escape((environment.getattr(environment.getattr(l_1_view, 'train'), 'width') * environment.getattr(environment.getattr(l_1_view, 'train'), 'factor')))
            yield 'px"></canvas>\n<figcaption></figcaption>\n</figure>\n'
            for l_2_source in environment.getattr(l_1_view, 'sources')[2:]:
                _loop_vars = {}
                pass
                yield '<span hidden data-source="'
                yield escape(l_2_source)
                yield '"></span>\n'
            l_2_source = missing
            yield '</div>\n'
        elif environment.getattr(l_1_view, 'alone'):
            pass
            yield '<div class="look-row">\n'
            yield escape(context.call((undefined(name='figure') if l_0_figure is missing else l_0_figure), environment.getitem(environment.getattr(l_1_view, 'alone'), 1), environment.getitem(environment.getattr(l_1_view, 'alone'), 0), _loop_vars=_loop_vars))
            yield '\n</div>\n'
        yield '</div>\n'
        for l_2_feature in environment.getattr(l_1_view, 'features'):
            _loop_vars = {}
            pass
            yield '<p>'
            yield escape(environment.getattr(l_2_feature, 'words'))
            yield '</p>\n<div class="look-row look-maps">\n'
            for (l_3_words, l_3_shown) in environment.getattr(l_2_feature, 'pictures'):
                _loop_vars = {}
                pass
                yield escape(context.call((undefined(name='figure') if l_0_figure is missing else l_0_figure), l_3_shown, l_3_words, _loop_vars=_loop_vars))
                yield '\n'
            l_3_words = l_3_shown = missing
            yield '</div>\n'
        l_2_feature = missing
        if environment.getattr(l_1_view, 'notes'):
            pass
            yield '<ul class="notes">\n'
            for l_2_note in environment.getattr(l_1_view, 'notes'):
                _loop_vars = {}
                pass
                yield '<li>'
                yield escape(l_2_note)
                yield '</li>\n'
            l_2_note = missing
            yield '</ul>\n'
        yield '</article>\n'
    l_1_loop = l_1_view = l_1_first = l_1_name = l_1_steps = missing

blocks = {}
debug_info = '1=13&2=22&4=34&6=43&7=45&10=52&11=58&12=61&13=63&16=69&18=72&19=74&22=76&26=80&27=84&31=98&32=100&33=108&38=112&39=116&44=121&46=124&47=126&49=128&52=134&53=138&56=142&58=145&62=148&63=152&65=154&66=157&70=162&72=165&73=169'
