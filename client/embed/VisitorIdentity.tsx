/** Shows the state of an agent's visitor secret, and creates or rotates it. */
import { Alert, Button, Group, NativeSelect, Stack, Text, Title } from '@mantine/core'
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { Dialog, DialogForm } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { renderMoment } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'

const secretQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['visitor-secret', agentId],
    queryFn: () => api.visitors.secret.query({ agent_id: agentId }),
  })

export function VisitorIdentity({ agentId }: { readonly agentId: string }) {
  const { data, error, refetch } = useQuery(secretQuery(agentId))
  const [isOpen, setOpen] = useState(false)
  const hasSecret = data?.created_at != null
  const action = hasSecret ? t('embed.rotateSecret') : t('embed.createSecret')
  return (
    <Stack
      gap="sm"
      component="section"
      className="panel"
      p="md"
      id="visitor-identity"
      aria-label={t('embed.identity')}
    >
      <Title order={2}>{t('embed.identity')}</Title>
      <Text size="sm">
        {t('embed.identityAbout')}{' '}
        <TextLink
          to="/agents/$agentId"
          params={{ agentId }}
          hash="section-visitors"
          underline="always"
          inherit
        >
          {t('embed.openIdentityFields')}
        </TextLink>
      </Text>
      {data === undefined ? (
        error === null ? (
          <Loading what="visitorSecret" rows={1} height={20} />
        ) : (
          <Failed error={error} what="visitorSecret" retry={() => void refetch()} />
        )
      ) : (
        <>
          <Text size="sm" role="status">
            {data.created_at === null
              ? t('embed.noSecret')
              : t('embed.secretCreated', { when: renderMoment(data.created_at) })}
            {data.previous_valid_until === null
              ? null
              : ` ${t('embed.previousSecret', { when: renderMoment(data.previous_valid_until) })}`}
          </Text>
          <Group>
            <Button variant="default" onClick={() => setOpen(true)}>
              {action}
            </Button>
          </Group>
        </>
      )}
      <Dialog title={action} isOpen={isOpen} onClose={() => setOpen(false)}>
        <RotateSecret agentId={agentId} hasSecret={hasSecret} onClose={() => setOpen(false)} />
      </Dialog>
    </Stack>
  )
}

const overlaps = [
  { value: '0', label: t('keys.overlapNone') },
  { value: '3600', label: t('keys.overlapHour') },
  { value: '86400', label: t('keys.overlapDay') },
  { value: '604800', label: t('keys.overlapWeek') },
]

interface RotateSecretProps {
  readonly agentId: string
  readonly hasSecret: boolean
  readonly onClose: () => void
}

function RotateSecret({ agentId, hasSecret, onClose }: RotateSecretProps) {
  const queries = useQueryClient()
  const [overlap, setOverlap] = useState('86400')
  const [secret, setSecret] = useState<string>()
  if (secret !== undefined) return <NewSecret secret={secret} onClose={onClose} />
  const submit = async () => {
    const seconds = hasSecret ? Number(overlap) : 0
    const made = await api.visitors.rotateSecret.mutate({ agent_id: agentId, overlap_seconds: seconds })
    setSecret(made.secret)
  }
  return (
    <DialogForm
      onSubmit={async () => {
        await submit()
        void queries.invalidateQueries({ queryKey: ['visitor-secret', agentId] })
      }}
      onCancel={onClose}
      action={hasSecret ? t('embed.rotateSecret') : t('embed.createSecret')}
      isDangerous={hasSecret && overlap === '0'}
    >
      {hasSecret ? (
        <NativeSelect
          label={t('embed.currentSecret')}
          description={t('embed.currentSecretHelp')}
          data={overlaps}
          value={overlap}
          onChange={(event) => setOverlap(event.currentTarget.value)}
        />
      ) : (
        <Text size="sm">{t('embed.secretShownOnce')}</Text>
      )}
    </DialogForm>
  )
}

function NewSecret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Stack gap="md">
      <Alert color="yellow" icon={<Icon name="warning" />} title={t('embed.copySecret')}>
        {t('embed.secretShownOnce')}
      </Alert>
      <CodeBlock code={secret} what={t('embed.newSecret')} />
      <Group justify="flex-end">
        <Button onClick={onClose}>{t('keys.haveCopied')}</Button>
      </Group>
    </Stack>
  )
}
