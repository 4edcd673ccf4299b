"""Written by tools/templates.py of sounds.html.j2: do not edit."""

VERSION = "3.1.6"

from jinja2.runtime import LoopContext, Macro, Markup, Namespace, TemplateNotFound, TemplateReference, TemplateRuntimeError, Undefined, escape, identity, internalcode, markup_join, missing, str_join
name = 'sounds.html.j2'

def root(context, missing=missing):
    resolve = context.resolve_or_missing
    undefined = environment.undefined
    concat = environment.concat
    cond_expr_undefined = Undefined
    if 0: yield None
    l_0_views = resolve('views')
    pass
    l_1_loop = missing
    for l_1_view, l_1_loop in LoopContext((undefined(name='views') if l_0_views is missing else l_0_views), undefined):
        _loop_vars = {}
        pass
        yield '<article class="look" aria-labelledby="sound-'
        yield escape(environment.getattr(l_1_loop, 'index'))
        yield '">\n<h3 id="sound-'
        yield escape(environment.getattr(l_1_loop, 'index'))
        yield '"><bdi>'
        yield escape(environment.getattr(l_1_view, 'name'))
        yield '</bdi> <span class="faint">'
        yield escape(environment.getattr(l_1_view, 'why'))
        yield '</span></h3>\n'
        if environment.getattr(l_1_view, 'words'):
            pass
            yield '<p>'
            yield escape(environment.getattr(l_1_view, 'words'))
            yield '</p>'
        yield '<div class="look-row">\n'
        for l_2_side in environment.getattr(l_1_view, 'sides'):
            _loop_vars = {}
            pass
            yield '<figure class="sound">\n<div class="axes">\n<p>band '
            yield escape(environment.getattr(l_2_side, 'bands'))
            yield '</p>\n<img src="'
            yield escape(environment.getattr(l_2_side, 'picture'))
            yield '" alt="spectrogram, '
            yield escape(environment.getattr(l_2_side, 'name'))
            yield '">\n<p><span>band 1, frame 1</span><span>frame '
            yield escape(environment.getattr(l_2_side, 'frames'))
            yield '</span></p>\n</div>\n<figcaption>'
            yield escape(environment.getattr(l_2_side, 'words'))
            yield '</figcaption>\n'
            if environment.getattr(l_2_side, 'sound'):
                pass
                yield '<audio controls preload="none" src="'
                yield escape(environment.getattr(l_2_side, 'sound'))
                yield '" aria-label="'
                yield escape(environment.getattr(l_1_view, 'name'))
                yield ', '
                yield escape(environment.getattr(l_2_side, 'name'))
                yield '"></audio>'
            yield '</figure>\n'
        l_2_side = missing
        if environment.getattr(l_1_view, 'difference'):
            pass
            yield '<figure class="sound">\n<img src="'
            yield escape(environment.getattr(l_1_view, 'difference'))
            yield '" alt="difference of the spectrograms">\n<figcaption>'
            yield escape(environment.getattr(l_1_view, 'difference_words'))
            yield '</figcaption>\n</figure>\n'
        yield '</div>\n'
        if environment.getattr(l_1_view, 'notes'):
            pass
            yield '<ul class="notes">'
            for l_2_note in environment.getattr(l_1_view, 'notes'):
                _loop_vars = {}
                pass
                yield '<li>'
                yield escape(l_2_note)
                yield '</li>'
            l_2_note = missing
            yield '</ul>'
        yield '</article>\n'
    l_1_loop = l_1_view = missing

blocks = {}
debug_info = '1=13&2=17&3=19&4=25&6=31&9=35&10=37&11=41&13=43&14=45&17=56&19=59&20=61&24=64'
