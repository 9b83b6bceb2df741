/** Asks for confirmation, then deletes conversations. */
import { useQueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

interface DeleteDialogProps {
  /** The dialog is open while this list is not empty. */
  readonly ids: readonly string[]
  readonly onClose: () => void
  /** Called before the lists are loaded again. */
  readonly onDeleted: () => unknown
}

export function DeleteDialog({ ids, onClose, onDeleted }: DeleteDialogProps) {
  const queries = useQueryClient()
  const isOne = ids.length === 1
  const remove = async () => {
    try {
      await Promise.all(ids.map((id) => api.conversations.delete.mutate({ conversation_id: id })))
      await onDeleted()
      for (const id of ids)
        queries.removeQueries({
          predicate: ({ queryKey: [area, , subject] }) => area === 'conversations' && subject === id,
        })
    } finally {
      await queries.invalidateQueries({ queryKey: ['conversations', 'list'] })
    }
    showDone(isOne ? t('conversations.deletedOne') : t('conversations.deletedMany'))
  }
  return (
    <ConfirmDialog
      title={isOne ? t('conversations.deleteOne') : t('conversations.deleteMany')}
      isOpen={ids.length > 0}
      onClose={onClose}
      onConfirm={remove}
      action={t('common.delete')}
      isDangerous
    >
      {isOne ? t('conversations.deleteOneLoss') : t('conversations.deleteManyLoss', { number: ids.length })}
    </ConfirmDialog>
  )
}
