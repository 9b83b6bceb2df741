/** The editor of a definition: form, text and trial side by side, each following the other. */

import { Button, Group, SegmentedControl, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo } from 'react'
import { CodeEditor } from '../../components/code/lazy-code.tsx'
import { Icon } from '../../shell/icons.tsx'
import { completeDefinition } from '../complete-definition.ts'
import { TryPanel } from '../playground/TryPanel.tsx'
import { definitionSchemaQuery, modelsQuery } from '../queries.ts'
import { DefinitionForm } from './DefinitionForm.tsx'
import type { Check, Draft } from './use-editor.ts'
import { type Panes, usePanes } from './use-panes.ts'

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

interface EditorBarProps {
  readonly draft: Draft
  readonly check: Check
  readonly panes: Panes
  readonly error: string | undefined
  readonly children: ReactNode
}

export function EditorBar({ draft, check, panes, error, children }: EditorBarProps) {
  return (
    <Group justify="space-between" gap="xs" mb="sm" className="editor-bar">
      <Group gap="xs">
        <SegmentedControl
          aria-label="What is shown"
          size="xs"
          data={panes.choices}
          value={panes.view}
          onChange={panes.setView}
        />
        {panes.isPhone ? null : (
          <Button
            size="xs"
            variant={panes.isTrying ? 'light' : 'default'}
            leftSection={<Icon name="play" size={14} />}
            aria-pressed={panes.isTrying}
            onClick={panes.toggleTry}
          >
            Try it
          </Button>
        )}
      </Group>
      <Group gap="sm">
        <Status draft={draft} check={check} error={error} />
        {children}
      </Group>
    </Group>
  )
}

function Status({ draft, check, error }: Pick<EditorBarProps, 'draft' | 'check' | 'error'>) {
  const { problem } = check
  const words =
    error ??
    (problem === null
      ? stateOf(draft)
      : `Line ${problem.line ?? 1}: ${problem.message.replace(/ \(line \d+, column \d+\)$/, '')}`)
  const isBad = error !== undefined || problem !== null
  return (
    <Text
      size="sm"
      c={isBad ? 'var(--mantine-color-error)' : 'dimmed'}
      role="status"
      className="editor-status"
    >
      {words}
    </Text>
  )
}

function stateOf({ isDirty, saved }: Draft): string {
  if (saved.version === 0) return 'Not created yet'
  return isDirty ? `Changed since version ${saved.version}` : `Saved, version ${saved.version}`
}
