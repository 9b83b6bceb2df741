/** Says that somebody else saved meanwhile, shows the difference, and lets one choose. */
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
      title="Somebody else saved this agent"
      isOpen={conflict !== undefined}
      onClose={endConflict}
      size="xl"
    >
      {conflict === undefined ? null : (
        <Stack gap="md">
          <Text size="sm">
            You began with version {draft.saved.version}; version {conflict.version} is there now. This is
            what yours would change of it:
          </Text>
          <DiffView before={conflict.text} after={draft.text} label="What your version would change" />
          <Group justify="flex-end" gap="xs">
            <Button
              variant="default"
              onClick={() => {
                draft.rebase(conflict, conflict.text)
                endConflict()
              }}
            >
              Take theirs
            </Button>
            <Button loading={saving.isSaving} onClick={() => saving.save(conflict.version)}>
              Save mine over it
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}
