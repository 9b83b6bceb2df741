/** Resolves a save that conflicts with a newer version of the agent. */

import { Button, Group, Stack, Text } from '@mantine/core'
import { DiffView } from '../../components/code/lazy-code.tsx'
import { Dialog } from '../../components/Dialog.tsx'
import { t } from '../../strings/language.ts'
import type { Draft, Saving } from './use-editor.ts'

interface ConflictDialogProps {
  readonly draft: Draft
  readonly saving: Saving
}

export function ConflictDialog({ draft, saving }: ConflictDialogProps) {
  const { conflict, endConflict } = saving
  return (
    <Dialog title={t('editor.conflictTitle')} isOpen={conflict !== undefined} onClose={endConflict} size="xl">
      {conflict === undefined ? null : (
        <Stack gap="md">
          <Text size="sm">
            {t('editor.conflictAbout', { from: draft.saved.version, to: conflict.version })}
          </Text>
          <DiffView before={conflict.text} after={draft.text} label={t('editor.draftChanges')} />
          <Group justify="flex-end" gap="xs">
            <Button
              variant="default"
              onClick={() => {
                draft.rebase(conflict, conflict.text)
                endConflict()
              }}
            >
              {t('editor.discardMine')}
            </Button>
            <Button loading={saving.isSaving} onClick={() => saving.save(conflict.version)}>
              {t('editor.saveMine')}
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}
