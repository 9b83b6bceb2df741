/** Edits an existing agent. */
import { Button, TextInput } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import type { AgentDetail } from '../../api.ts'
import { LeaveGuard } from '../../components/Dialog.tsx'
import { t } from '../../strings/language.ts'
import { useAgent } from '../queries.ts'
import { ConflictDialog } from './ConflictDialog.tsx'
import { Editor } from './Editor.tsx'
import { NextSteps } from './NextSteps.tsx'
import { useStoredDraft } from './stored-draft.ts'
import { useCheck, useDraft, useSave } from './use-editor.ts'

export function EditAgentPage() {
  const agent = useAgent()
  return <EditAgent key={agent.agent_id} agent={agent} />
}

function EditAgent({ agent }: { readonly agent: AgentDetail }) {
  const { agent_id: id, yaml: text, format, version } = agent
  const draft = useDraft({ text, format, version })
  const check = useCheck(draft.text, draft.format)
  const [note, setNote] = useState('')
  const saving = useSave(id, draft, note)
  // The note belongs to one version.
  const { version: savedVersion } = draft.saved
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version, not its number, clears the note
  useEffect(() => setNote(''), [savedVersion])
  const offer = useStoredDraft(id, draft)
  const isDirty = useRef(false)
  isDirty.current = draft.isDirty
  const canSave = draft.isDirty && check.problems.length === 0
  const save = () => {
    if (canSave && !saving.isSaving) saving.save()
  }
  return (
    <>
      <NextSteps agentId={id} />
      <Editor
        draft={draft}
        check={check}
        agentId={id}
        trialId={id}
        error={saving.error}
        offer={offer}
        onSave={save}
      >
        {draft.isDirty ? (
          <>
            <TextInput
              size="xs"
              className="version-note"
              aria-label={t('editor.note')}
              placeholder={t('editor.noteHint')}
              maxLength={200}
              autoComplete="off"
              value={note}
              onChange={(event) => setNote(event.currentTarget.value)}
            />
            <Button variant="default" size="xs" onClick={() => draft.setText(draft.saved.text)}>
              {t('common.discard')}
            </Button>
          </>
        ) : null}
        <Button size="xs" disabled={!canSave} loading={saving.isSaving} onClick={save}>
          {t('common.save')}
        </Button>
      </Editor>
      <ConflictDialog draft={draft} saving={saving} />
      <LeaveGuard isDirty={isDirty} loss={t('common.leaveAgent')} />
    </>
  )
}
