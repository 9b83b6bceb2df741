/** Shows a draft as a form, as text and in the playground. */

import { Alert, Button, Group, SegmentedControl, Text } from '@mantine/core'
import { useHotkeys, useViewportSize } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { CodeEditor } from '../../components/code/lazy-code.tsx'
import { Ago } from '../../components/text.tsx'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { rich } from '../../strings/rich.tsx'
import { completeDefinition } from '../complete-definition.ts'
import { PlaygroundPanel } from '../playground/Playground.tsx'
import { definitionSchemaQuery, modelsQuery } from '../queries.ts'
import { DefinitionForm } from './DefinitionForm.tsx'
import type { Problem } from './list-problems.ts'
import { focusField, ProblemSummary } from './ProblemSummary.tsx'
import { SectionList } from './SectionList.tsx'
import type { DraftOffer } from './stored-draft.ts'
import type { Check, Draft } from './use-editor.ts'
import { usePanesTop } from './use-panes-top.ts'
import '../editor.css'

interface EditorProps {
  readonly draft: Draft
  readonly check: Check
  /** Undefined for an agent that has not been created yet. */
  readonly agentId: string | undefined
  /** Identifies the trial: the agent's id, or an id for the new definition. */
  readonly trialId: string
  readonly error: string | undefined
  /** Unsaved changes from an earlier visit to the page. */
  readonly offer?: DraftOffer | undefined
  /** Called on Ctrl+S or Cmd+S if the definition has no errors. */
  readonly onSave: () => void
  /** Buttons at the end of the toolbar. */
  readonly children: ReactNode
}

export function Editor({ draft, check, agentId, trialId, error, offer, onSave, children }: EditorProps) {
  const panes = usePanes()
  const panesRef = usePanesTop()
  const { shows } = panes
  const count = Object.values(shows).filter(Boolean).length
  const { problems } = check
  const goTo = ({ path }: Problem) => {
    if (!shows.form && path !== null) panes.setView('form')
    focusField(path)
  }
  const save = () => {
    if (document.querySelector('[role=dialog]') !== null) return
    const [first] = problems
    if (first === undefined) onSave()
    else goTo(first)
  }
  useHotkeys([['mod+S', save]], [])
  return (
    <>
      <EditorBar draft={draft} check={check} panes={panes} error={error}>
        {children}
      </EditorBar>
      {offer === undefined ? null : <DraftNotice offer={offer} />}
      <ProblemSummary problems={problems} onChoose={goTo} />
      <div className="editor-layout" data-listed={panes.isListed}>
        {panes.isListed ? <SectionList /> : null}
        <div className="editor-panes" data-count={count} ref={panesRef}>
          {shows.form ? (
            <div className="panel editor-pane">
              <DefinitionForm draft={draft} check={check} />
            </div>
          ) : null}
          {shows.yaml ? <TextPane draft={draft} problem={problems[0]} onSave={save} /> : null}
          {shows.try ? (
            <div className="panel editor-pane editor-pane-try">
              <PlaygroundPanel
                key={trialId}
                trialId={trialId}
                subject={{ agentId, text: draft.text, format: draft.format, savedText: draft.saved.text }}
                obstacle={problems.length === 0 ? undefined : t('editor.fixFirst')}
                widen={panes.isPhone ? undefined : { isWide: panes.view === 'try', toggle: panes.toggleWide }}
              />
            </div>
          ) : null}
        </div>
      </div>
    </>
  )
}

interface TextPaneProps {
  readonly draft: Draft
  readonly problem: Problem | undefined
  readonly onSave: () => void
}

function TextPane({ draft, problem, onSave }: TextPaneProps) {
  const complete = useCompletion()
  return (
    <div className="panel editor-pane">
      <CodeEditor
        value={draft.text}
        onChange={draft.setText}
        label={t(draft.format === 'yaml' ? 'editor.asYaml' : 'editor.asMarkdown')}
        problem={problem === undefined || problem.line === null ? null : problem}
        complete={complete}
        onSave={onSave}
      />
    </div>
  )
}

function DraftNotice({ offer }: { readonly offer: DraftOffer }) {
  return (
    <Alert mb="sm" role="region" aria-label={t('editor.unsaved')}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{rich('editor.unsavedAbout', { when: <Ago seconds={offer.savedAt} /> })}</Text>
        <Group gap="xs">
          <Button size="xs" variant="default" aria-label={t('editor.discardUnsaved')} onClick={offer.discard}>
            {t('common.discard')}
          </Button>
          <Button size="xs" variant="default" onClick={offer.restore}>
            {t('editor.restoreUnsaved')}
          </Button>
        </Group>
      </Group>
    </Alert>
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

function EditorBar({ draft, check, panes, error, children }: EditorBarProps) {
  return (
    <Group justify="space-between" gap="xs" mb="sm" className="editor-bar">
      <Group gap="xs">
        <SegmentedControl
          aria-label={t('usage.view')}
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
            {t('editor.try')}
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
  const [problem] = check.problems
  const words = error ?? (problem === undefined ? stateOf(draft) : renderStatus(problem))
  const isBad = error !== undefined || problem !== undefined
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

function renderStatus({ line, message }: Problem): string {
  const words = message.replace(/ \(line \d+, column \d+\)$/, '')
  return line === null ? words : t('editor.line', { line, message: words })
}

function stateOf({ isDirty, saved }: Draft): string {
  if (saved.version === 0) return t('editor.notCreated')
  return isDirty
    ? t('embed.changedSince', { version: saved.version })
    : t('embed.savedAs', { version: saved.version })
}

/**
 * Window widths in pixels. Below `PHONE`, the editor shows one pane. From `LISTED`, it shows the list of
 * sections. From `WIDE`, it has space for three panes.
 */
const PHONE = 768
const LISTED = 1_200
const WIDE = 1_560

type View = 'both' | 'form' | 'yaml' | 'try'

interface Panes {
  readonly view: View
  readonly choices: { value: View; label: string }[]
  readonly isPhone: boolean
  readonly isTrying: boolean
  /** Whether the window has space for the list of sections next to the form. */
  readonly isListed: boolean
  readonly shows: Readonly<Record<'form' | 'yaml' | 'try', boolean>>
  setView(view: string): void
  toggleTry(): void
  /** Shows only the trial, or the trial next to the form. */
  toggleWide(): void
}

function usePanes(): Panes {
  const search: { view?: View; try?: boolean } = useSearch({ strict: false })
  const navigate = useNavigate()
  const width = useViewportSize().width || window.innerWidth
  const isPhone = width < PHONE
  const isTrying = (search.try === true || search.view === 'try') && !isPhone
  const choices = listChoices(isPhone, isTrying && width < WIDE)
  const isWide = search.view === 'try' && !isPhone
  const view = isWide ? 'try' : (choices.find((choice) => choice === search.view) ?? choices[0] ?? 'form')
  const set = (next: object) =>
    void navigate({ to: '.', search: (old: object) => ({ ...old, ...next }), replace: true })
  const hasForm = view === 'both' || view === 'form'
  return {
    view,
    isListed: hasForm && width >= LISTED && !(view === 'both' && isTrying),
    choices: choices.map((value) => ({ value, label: t(`editor.${value}`) })),
    isPhone,
    isTrying,
    shows: {
      form: hasForm,
      yaml: view === 'both' || view === 'yaml',
      try: isTrying || view === 'try',
    },
    setView: (next) => set({ view: next }),
    toggleTry: () =>
      isWide ? set({ view: undefined, try: undefined }) : set({ try: isTrying ? undefined : true }),
    toggleWide: () => set(isWide ? { view: undefined, try: true } : { view: 'try', try: true }),
  }
}

function listChoices(isPhone: boolean, isNarrow: boolean): View[] {
  if (isPhone) return ['form', 'yaml', 'try']
  return isNarrow ? ['form', 'yaml'] : ['both', 'form', 'yaml']
}
