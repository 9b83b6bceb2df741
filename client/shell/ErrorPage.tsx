/** What is shown in the place of a page that broke, or that there is none of. */
import { Alert, Anchor, Button, Code, Stack, Text } from '@mantine/core'
import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { toFailure } from '../failure.ts'

/** A script that is gone was replaced by a newer console: then only a fresh page helps. */
export function BrokenPage({ error }: ErrorComponentProps) {
  return (
    <Stack gap="md">
      <PageHeader title="This page broke" />
      <Alert color="red" role="alert">
        <Text size="sm">Reload it; when the server was updated meanwhile, that is all it needs.</Text>
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

export function UnknownPage() {
  return (
    <>
      <PageHeader title="No such page" />
      <Empty
        icon="search"
        title="There is nothing at this address"
        action={
          <Anchor component={Link} to="/agents">
            Go to the agents
          </Anchor>
        }
      >
        It may have been deleted, or belong to another key.
      </Empty>
    </>
  )
}
