/** Lists every error in the definition; a click on an error focuses its field. */

import { Alert, Anchor, Text } from '@mantine/core'
import type { PlainKey } from '../../strings/catalogue.ts'
import { t } from '../../strings/language.ts'
import { describeProblem, type Problem } from './list-problems.ts'

const labels: Readonly<Record<string, PlainKey>> = {
  name: 'editor.name',
  model: 'editor.model',
  temperature: 'editor.temperature',
  instructions: 'editor.instructions',
  tools: 'editor.serverTools',
  pageTools: 'editor.pageTools',
  'behavior.tone': 'editor.tone',
  'behavior.language': 'editor.language',
  'behavior.rules': 'editor.rules',
  'embed.title': 'editor.title',
  'embed.greeting': 'editor.greeting',
  'embed.starters': 'editor.starters',
  'embed.origins': 'embed.origins',
  'embed.imageHosts': 'embed.imageHosts',
  'conversations.keep': 'editor.deleteAfter',
}

interface ProblemSummaryProps {
  readonly problems: readonly Problem[]
  readonly onChoose: (problem: Problem) => void
}

export function ProblemSummary({ problems, onChoose }: ProblemSummaryProps) {
  if (problems.length === 0) return null
  return (
    <Alert color="red" mb="sm" role="region" aria-label={t('editor.errors')}>
      <Text size="sm" fw={600} mb={4} c="var(--bad)">
        {t('embed.errors', { count: problems.length })}
      </Text>
      <ul className="problem-list">
        {problems.map((problem) => (
          <li key={problem.path ?? ''}>
            <Anchor
              component="button"
              type="button"
              size="sm"
              underline="always"
              ta="start"
              c="inherit"
              onClick={() => onChoose(problem)}
            >
              {renderProblem(problem)}
            </Anchor>
          </li>
        ))}
      </ul>
    </Alert>
  )
}

function renderProblem(problem: Problem): string {
  const { path, line } = problem
  const words = describeProblem(problem)
  if (path === null) return line === null ? words : t('editor.line', { line, message: words })
  const label = labels[path.replace(/\[\d+\]$/, '')]
  return `${label === undefined ? path : t(label)}: ${words}`
}

/**
 * Maximum number of animation frames to wait for a field to appear, for example after its tool has been
 * opened.
 */
const MAX_FRAMES = 60

/**
 * Focuses the field at `path`, or the nearest field that contains it. Opens its tool first. Focuses the code
 * editor if the form has no such field.
 */
export function focusField(path: string | null, frames = MAX_FRAMES): void {
  const field = path === null || frames === 0 ? undefined : findVisible(path)
  if (field !== undefined) {
    field.focus()
    field.scrollIntoView({ block: 'center' })
  } else if (path === null || frames === 0) {
    document.querySelector<HTMLElement>('.editor-pane .cm-content')?.focus()
  } else {
    requestAnimationFrame(() => focusField(path, frames - 1))
  }
}

/** Returns the field, or undefined while it is not visible. Opens the tool that contains it. */
function findVisible(path: string): HTMLElement | undefined {
  const tool = /^tools\[\d+\]/.exec(path)?.[0]
  const control = tool === undefined ? null : findField(tool)
  if (control?.getAttribute('aria-expanded') === 'false') {
    control.click()
    return undefined
  }
  const field = findNearest(path)
  if (field === null || !field.checkVisibility()) return undefined
  return field.querySelector<HTMLElement>('input:checked') ?? field
}

function findNearest(path: string): HTMLElement | null {
  const parent = path.replace(/(?:\.[^.[\]]+|\[\d+\])$/, '')
  return findField(path) ?? (parent === path ? null : findNearest(parent))
}

function findField(path: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`)
}
