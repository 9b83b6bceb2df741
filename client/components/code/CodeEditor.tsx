/**
 * Shows a code editor. Applies an external change to `value` as one minimal edit, so that undo includes it.
 */
import {
  autocompletion,
  type CompletionSource,
  closeBrackets,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, indentUnit } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { EditorState, type Text } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { codeTheme } from './code-theme.ts'

/** A problem and its position; line and column start at 1. */
interface CodeProblem {
  readonly message: string
  readonly line: number | null
  readonly column: number | null
}

export interface CodeEditorProps {
  readonly value: string
  readonly onChange: (value: string) => void
  /** Accessible name of the editor. */
  readonly label: string
  readonly problem?: CodeProblem | null
  readonly complete?: CompletionSource
  /** Called on Ctrl+S. */
  readonly onSave?: () => void
}

export function CodeEditor(props: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef(props)
  latest.current = props
  useEffect(() => {
    const created = new EditorView({
      parent: host.current as Element,
      state: createState(() => latest.current),
    })
    view.current = created
    return () => created.destroy()
  }, [])
  useEffect(() => {
    if (view.current !== undefined) follow(view.current, props.value)
  }, [props.value])
  const { problem } = props
  useEffect(() => {
    if (view.current !== undefined) showProblem(view.current, problem ?? undefined)
  }, [problem])
  return <div ref={host} className="code-editor" />
}

function createState(props: () => CodeEditorProps): EditorState {
  const save = () => {
    props().onSave?.()
    return true
  }
  return EditorState.create({
    doc: props().value,
    extensions: [
      lineNumbers(),
      history(),
      drawSelection(),
      highlightActiveLine(),
      bracketMatching(),
      closeBrackets(),
      indentUnit.of('  '),
      yaml(),
      lintGutter(),
      autocompletion({ override: [(context) => props().complete?.(context) ?? null], icons: false }),
      keymap.of([{ key: 'Mod-s', run: save }, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
      codeTheme,
      EditorView.contentAttributes.of({ 'aria-label': props().label, tabindex: '0' }),
      EditorView.updateListener.of(({ docChanged, state }) => {
        const text = state.doc.toString()
        if (docChanged && text !== props().value) props().onChange(text)
      }),
    ],
  })
}

/** Replaces only the text between the common prefix and suffix. */
function follow(view: EditorView, value: string): void {
  const now = view.state.doc.toString()
  if (now === value) return
  const shorter = Math.min(now.length, value.length)
  let start = 0
  while (start < shorter && now[start] === value[start]) start++
  let end = 0
  while (end < shorter - start && now.at(-1 - end) === value.at(-1 - end)) end++
  view.dispatch({
    changes: { from: start, to: now.length - end, insert: value.slice(start, value.length - end) },
  })
}

function showProblem(view: EditorView, problem: CodeProblem | undefined): void {
  const found = problem === undefined ? [] : [toDiagnostic(view.state.doc, problem)]
  view.dispatch(setDiagnostics(view.state, found))
}

/** Marks the text from the problem's position to the end of its line. */
function toDiagnostic(text: Text, { message, line, column }: CodeProblem): Diagnostic {
  const where = text.line(Math.min(Math.max(line ?? 1, 1), text.lines))
  const from = Math.min(where.from + (column ?? 1) - 1, where.to)
  return { from, to: Math.max(from, where.to), severity: 'error', message }
}
