/** Resolves a save that conflicts with a newer version of the agent. */
import { Button, Group, Stack, Text } from '@mantine/core'
import { DiffView } from '../../components/code/lazy-code.tsx'
import { Dialog } from '../../components/Dialog.tsx'
import type { Draft, Saving } from './use-editor.ts'

interface ConflictDialogProps {
  readonly draft: Draft
  readonly saving: Saving
}

export function ConflictDialog({ draft, saving }: ConflictDialogProps) {
  const { conflict, endConflict } = saving
  return (
    <Dialog
      title="This agent has a newer version"
      isOpen={conflict !== undefined}
      onClose={endConflict}
      size="xl"
    >
      {conflict === undefined ? null : (
        <Stack gap="md">
          <Text size="sm">
            You started from version {draft.saved.version}, but version {conflict.version} has been saved
            since. Your draft would change it as follows:
          </Text>
          <DiffView before={conflict.text} after={draft.text} label="Changes in your draft" />
          <Group justify="flex-end" gap="xs">
            <Button
              variant="default"
              onClick={() => {
                draft.rebase(conflict, conflict.text)
                endConflict()
              }}
            >
              Discard my changes
            </Button>
            <Button loading={saving.isSaving} onClick={() => saving.save(conflict.version)}>
              Save my version
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}
