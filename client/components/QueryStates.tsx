/** Shows the loading, empty and error states of a view. */
import { Alert, Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useNetwork } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { toFailure } from '../failure.ts'
import { Icon, type IconName } from '../shell/icons.tsx'
import type { Thing } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'
import { RequestId } from './RequestId.tsx'

/** Shows placeholder rows at the expected height while data loads. */
export function Loading({ what, rows = 4, height = 44 }: LoadingProps) {
  return (
    <Stack
      gap="xs"
      role="status"
      aria-label={t('common.loading', { thing: t(`things.${what}`) })}
      aria-busy="true"
    >
      {Array.from({ length: rows }, (_, index) => index).map((row) => (
        <Skeleton key={row} height={height} radius="md" />
      ))}
    </Stack>
  )
}

interface LoadingProps {
  readonly what: Thing
  readonly rows?: number
  /** Height of one row in pixels. */
  readonly height?: number
}

/** Explains what the list will contain and how to add an item. */
export function Empty({ icon, title, children, action }: EmptyProps) {
  return (
    <Stack className="panel" align="center" gap="xs" px="md" py={48} ta="center">
      <Text c="dimmed" component="span">
        <Icon name={icon} size={32} />
      </Text>
      <Title order={2}>{title}</Title>
      <Text c="dimmed" size="sm" maw={440}>
        {children}
      </Text>
      {action}
    </Stack>
  )
}

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly children: ReactNode
  readonly action?: ReactNode
}

/** Shows the server's error message, the request id and a retry button. */
export function Failed({ error, what = 'page', title, retry }: FailedProps) {
  const { message, code } = toFailure(error)
  const { online } = useNetwork()
  const isOffline = code === 'offline'
  if (isOffline && !online) return <Offline what={what} />
  return (
    <Alert
      color={isOffline ? 'yellow' : 'red'}
      icon={<Icon name={isOffline ? 'offline' : 'warning'} />}
      title={title ?? t('common.failed', { thing: t(`things.${what}`) })}
      role="alert"
    >
      <Group justify="space-between" gap="sm">
        <Text size="sm">{message}</Text>
        <Button variant="default" size="xs" onClick={retry}>
          {t('common.tryAgain')}
        </Button>
      </Group>
      <RequestId error={error} />
    </Alert>
  )
}

/** Replaces a page or data that will load automatically when the browser is online again. */
export function Offline({ what }: { readonly what: Thing }) {
  return (
    <Alert color="yellow" icon={<Icon name="offline" />} title={t('common.offline')} role="alert">
      <Text size="sm">
        {what === 'page' ? t('common.pageWillLoad') : t('common.willLoad', { thing: t(`things.${what}`) })}
      </Text>
    </Alert>
  )
}

interface FailedProps {
  readonly error: unknown
  /** The subject of the title. */
  readonly what?: Thing
  /** Replaces the title. */
  readonly title?: string
  readonly retry: () => void
}
