// The OpenID provider of the tests: oidc-provider with its own pages for login and consent. Arguments: port, address of the product.
// Groups of an account are read at each sign-in from the file that the third argument names.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const { default: Provider } = await import(createRequire(process.cwd() + '/.tools/provider/').resolve('oidc-provider'));

const [port, product, groups] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'mlflow',
    token_endpoint_auth_method: 'none',
    redirect_uris: [`${product}/login/callback`],
    post_logout_redirect_uris: [`${product}/logout?done`],
  }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: JSON.parse(readFileSync(groups))[id] ?? [] }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
