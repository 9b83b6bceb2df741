/** Shows the pages for errors, unknown addresses and scripts that are still loading. */
import { Alert, Anchor, Button, Code, Stack, Text } from '@mantine/core'
import { useNetwork } from '@mantine/hooks'
import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Loading, Offline } from '../components/QueryStates.tsx'
import { toFailure } from '../failure.ts'

/** Offers a reload, because an update may have replaced the page's scripts. */
export function BrokenPage({ error }: ErrorComponentProps) {
  return (
    <Stack gap="md">
      <PageHeader title="Something went wrong" />
      <Alert color="red" role="alert">
        <Text size="sm">Reload the page. This fixes the error if the server has been updated.</Text>
        <Code block mt="sm">
          {toFailure(error).message}
        </Code>
        <Button mt="md" variant="default" onClick={() => window.location.reload()}>
          Reload
        </Button>
      </Alert>
    </Stack>
  )
}

/** Shown while a page's script loads. */
export function PendingPage() {
  const { online } = useNetwork()
  return online ? <Loading what="the page" /> : <Offline what="This page" />
}

export function UnknownPage() {
  return (
    <>
      <PageHeader title="Page not found" />
      <Empty
        icon="search"
        title="This page does not exist"
        action={
          <Anchor component={Link} to="/agents">
            Go to agents
          </Anchor>
        }
      >
        It may have been deleted, or it may belong to another key.
      </Empty>
    </>
  )
}
