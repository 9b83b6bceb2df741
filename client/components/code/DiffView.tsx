/** Shows the differences between two texts in a unified view. */
import { yaml } from '@codemirror/lang-yaml'
import { unifiedMergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView, lineNumbers } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { codeTheme } from './code-theme.ts'

export interface DiffViewProps {
  readonly before: string
  readonly after: string
  readonly label: string
}

export function DiffView({ before, after, label }: DiffViewProps) {
  const host = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const view = new EditorView({
      parent: host.current as Element,
      doc: after,
      extensions: [
        lineNumbers(),
        yaml(),
        EditorState.readOnly.of(true),
        unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3 } }),
        EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true', tabindex: '0' }),
        codeTheme,
      ],
    })
    return () => view.destroy()
  }, [before, after, label])
  return <div ref={host} className="code-editor diff-view" />
}
