/** The editor of a definition: form, text and trial side by side, each following the other. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo } from 'react'
import { CodeEditor } from '../../parts/CodeEditor.tsx'
import { completeDefinition } from '../complete-definition.ts'
import { definitionSchemaQuery, modelsQuery } from '../queries.ts'
import { TryPanel } from '../try/TryPanel.tsx'
import { DefinitionForm } from './DefinitionForm.tsx'
import { EditorBar } from './EditorBar.tsx'
import type { Check } from './use-check.ts'
import type { Draft } from './use-draft.ts'
import { usePanes } from './use-panes.ts'

interface EditorProps {
  readonly draft: Draft
  readonly check: Check
  /** Undefined for an agent that was never saved. */
  readonly agentId: string | undefined
  readonly error: string | undefined
  readonly onSave: () => void
  /** What can be done, at the end of the bar. */
  readonly children: ReactNode
}

export function Editor({ draft, check, agentId, error, onSave, children }: EditorProps) {
  const panes = usePanes()
  const { shows } = panes
  const count = Object.values(shows).filter(Boolean).length
  const complete = useCompletion()
  return (
    <>
      <EditorBar draft={draft} check={check} panes={panes} error={error}>
        {children}
      </EditorBar>
      <div className="editor-panes" data-count={count}>
        {shows.form ? (
          <div className="panel editor-pane">
            <DefinitionForm draft={draft} problem={check.problem} />
          </div>
        ) : null}
        {shows.yaml ? (
          <div className="panel editor-pane">
            <CodeEditor
              value={draft.text}
              onChange={draft.setText}
              label={draft.format === 'yaml' ? 'Definition as YAML' : 'Definition as Markdown'}
              problem={check.problem}
              complete={complete}
              onSave={onSave}
            />
          </div>
        ) : null}
        {shows.try ? (
          <div className="panel editor-pane">
            <TryPanel
              subject={{ agentId, yaml: draft.text, format: draft.format }}
              obstacle={check.problem === null ? undefined : 'The definition has a fault; mend it first.'}
            />
          </div>
        ) : null}
      </div>
    </>
  )
}

function useCompletion() {
  const { data: schema } = useQuery(definitionSchemaQuery)
  const { data: models } = useQuery(modelsQuery)
  return useMemo(() => completeDefinition(schema, models?.map(({ id }) => id) ?? []), [schema, models])
}
