/** Shows the pages for errors, unknown addresses and scripts that are still loading. */
import { Alert, Anchor, Button, Code, Stack, Text } from '@mantine/core'
import { useNetwork } from '@mantine/hooks'
import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Loading, Offline } from '../components/QueryStates.tsx'
import { toFailure } from '../failure.ts'
import { t } from '../strings/language.ts'

/** Shows an unexpected error and offers a reload, because an update may have replaced the page's scripts. */
export function BrokenPage({ error }: ErrorComponentProps) {
  return (
    <Stack gap="md">
      <PageHeader title={t('shell.brokenTitle')} />
      <Alert color="red" role="alert">
        <Text size="sm">{t('shell.brokenHelp')}</Text>
        <Code block mt="sm">
          {toFailure(error).message}
        </Code>
        <Button mt="md" variant="default" onClick={() => window.location.reload()}>
          {t('shell.reload')}
        </Button>
      </Alert>
    </Stack>
  )
}

/** Shown while a page's script loads. */
export function PendingPage() {
  const { online } = useNetwork()
  return online ? <Loading what="page" /> : <Offline what="page" />
}

export function UnknownPage() {
  return (
    <>
      <PageHeader title={t('shell.unknownTitle')} />
      <Empty
        icon="search"
        title={t('shell.unknownHeading')}
        action={
          <Anchor component={Link} to="/agents">
            {t('shell.goToAgents')}
          </Anchor>
        }
      >
        {t('shell.unknownHelp')}
      </Empty>
    </>
  )
}
