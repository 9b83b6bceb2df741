/** Asks for confirmation, then begins to erase a visitor. */
import { List, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api } from '../api.ts'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { t } from '../strings/language.ts'
import { erasureQuery, type Visitor } from './queries.ts'

interface EraseDialogProps {
  readonly visitor: Visitor
  readonly isOpen: boolean
  readonly onClose: () => void
}

export function EraseDialog({ visitor: { id, conversations }, isOpen, onClose }: EraseDialogProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const erase = async () => {
    const erasure = await api.visitors.erase.mutate({ visitor_id: id })
    queries.setQueryData(erasureQuery(erasure.id).queryKey, erasure)
    await navigate({
      to: '/visitors/$visitorId',
      params: { visitorId: id },
      search: { erasure: erasure.id },
      replace: true,
    })
  }
  const losses = [
    t('visitors.lossConversations', { count: conversations }),
    t('visitors.lossFiles'),
    t('visitors.lossDeliveries'),
    t('visitors.lossIdentity'),
  ]
  return (
    <ConfirmDialog
      title={t('visitors.erase')}
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={erase}
      action={t('visitors.erase')}
      isDangerous
    >
      <Stack gap="sm">
        <Text size="sm">{t('visitors.eraseLoss')}</Text>
        <List size="sm" spacing={4}>
          {losses.map((loss) => (
            <List.Item key={loss}>{loss}</List.Item>
          ))}
        </List>
        <Text size="sm" fw={500}>
          {t('visitors.eraseFinal')}
        </Text>
      </Stack>
    </ConfirmDialog>
  )
}
