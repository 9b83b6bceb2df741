/** Above the editor: what is shown, whether it is saved, and saving it. */
import { Button, Group, SegmentedControl, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon } from '../../shell/icons.tsx'
import type { Check } from './use-check.ts'
import type { Draft } from './use-draft.ts'
import type { Panes } from './use-panes.ts'

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
